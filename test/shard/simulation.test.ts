/**
 * The real shard against a simulated, faulty outside in virtual time: owners that die, pause and come back,
 * lost requests and answers, duplicates, purges, dead letters that users delete.
 * `SIM_SEED` runs one seed, `SIM_RUNS` sets how many are run.
 */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { type RunResult, run } from './simulation/run.ts'
import type { Rule } from './simulation/world.ts'

const FIRST = Number(process.env.SIM_SEED ?? 1)
const RUNS = process.env.SIM_SEED ? 1 : Number(process.env.SIM_RUNS ?? 120)
/** Within so many seeds a rule left out must show. */
const MUTANT_RUNS = 400
const MUTANTS: Rule[] = ['expected-sequence', 'postgres-fence', 'tombstone']

async function firstFailure(leftOut: Rule): Promise<number | undefined> {
  for (let seed = 1; seed <= MUTANT_RUNS; seed++) {
    const { errors } = await run(seed, leftOut)
    if (errors.length > 0) return seed
  }
  return undefined
}

describe('shard, simulated', function () {
  this.timeout(600_000)

  it(`holds over ${RUNS} seeded runs from ${FIRST}`, async () => {
    const total: RunResult = {
      errors: [],
      sent: 0,
      dead: 0,
      duplicates: 0,
      owners: 0,
      commits: 0,
      purgedJournal: 0,
      purgedInbox: 0,
    }
    for (let seed = FIRST; seed < FIRST + RUNS; seed++) {
      const result = await run(seed)
      expect(result.errors, `seed ${seed}`).to.deep.equal([])
      for (const key of ['sent', 'dead', 'duplicates', 'owners'] as const) total[key] += result[key]
    }
    // A run that exercises nothing proves nothing.
    expect(total.sent).to.be.greaterThan(50 * RUNS)
    expect(total.owners).to.be.greaterThan(2 * RUNS)
    if (RUNS < 20) return
    expect(total.dead).to.be.greaterThan(RUNS)
    expect(total.duplicates).to.be.greaterThan(10 * RUNS)
  })

  for (const rule of MUTANTS) {
    it(`notices an outside without ${rule}`, async () => {
      expect(await firstFailure(rule)).to.be.a('number')
    })
  }
})
