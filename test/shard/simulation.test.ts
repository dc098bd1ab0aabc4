/**
 * The real shard against a simulated, faulty outside in virtual time: owners that die, freeze and come back at any
 * write, lose their leases for a while, lost requests and answers, duplicates, purges, hand-overs, buffers that are
 * disabled, changed and deleted, dead letters that users delete. And the same core with one rule after the other left
 * out, which the checker and its judges must notice.
 * `SIM_SEED` runs one seed, `SIM_RUNS` sets how many are run; `npm run test:sim` runs thousands.
 */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { after, describe, it } from 'mocha'
import { mutate } from './mutate.ts'
import { MUTANTS } from './simulation/mutants.ts'
import { endMutation, loadMutated } from './simulation/mutation.ts'
import { run } from './simulation/run.ts'
import { RULES, type Rule } from './simulation/world.ts'

const FIRST = Number(process.env.SIM_SEED ?? 1)
const RUNS = process.env.SIM_SEED ? 1 : Number(process.env.SIM_RUNS ?? 100)
/** Within so many seeds a rule left out must show. */
const MUTANT_RUNS = 6_000
/** Where a rule of Postgres that is left out showed last. */
const RULE_SEEDS: Record<Rule, number> = { 'postgres-fence': 8, 'postgres-lock': 14, tombstone: 79 }

async function fails(runOne: typeof run, seed: number, breaks: RegExp): Promise<boolean> {
  const { errors } = await runOne(seed)
  return errors.some((error) => breaks.test(error))
}

/** `likely` is tried before all others. */
async function firstFailure(runOne: typeof run, breaks = /./, likely = 1): Promise<number | undefined> {
  if (await fails(runOne, likely, breaks)) return likely
  for (let seed = 1; seed <= MUTANT_RUNS; seed++) if (await fails(runOne, seed, breaks)) return seed
  return undefined
}

describe('shard, simulated', function () {
  this.timeout(600_000)
  after(endMutation)

  it(`holds over ${RUNS} seeded runs from ${FIRST}`, async () => {
    const total = { sent: 0, dead: 0, duplicates: 0, owners: 0, pauses: 0, purgedJournal: 0, purgedInbox: 0 }
    for (let seed = FIRST; seed < FIRST + RUNS; seed++) {
      const result = await run(seed)
      expect(result.errors, `seed ${seed}`).to.deep.equal([])
      for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += result[key]
    }
    if (RUNS < 20) return
    // Runs that exercise nothing prove nothing.
    expect(total.sent).to.be.greaterThan(30 * RUNS)
    expect(total.owners).to.be.greaterThan(2 * RUNS)
    expect(total.pauses).to.be.greaterThan(RUNS / 2)
    expect(total.duplicates).to.be.greaterThan(10 * RUNS)
    expect(total.dead).to.be.greaterThan(RUNS / 2)
    expect(total.purgedJournal).to.be.greaterThan(10 * RUNS)
    expect(total.purgedInbox).to.be.greaterThan(10 * RUNS)
  })

  it('replays a seed exactly', async () => {
    const first = await run(FIRST)
    expect(await run(FIRST)).to.deep.equal(first)
    expect((await run(FIRST + 1)).hash).not.to.equal(first.hash)
  })

  for (const mutant of MUTANTS) {
    it(`notices a core without ${mutant.name}: ${mutant.rule}`, async () => {
      const mutated = await loadMutated(mutant)
      const runOne = (each: number) => mutated.run(each, { power: mutant.power ?? false })
      const seed = await firstFailure(runOne, mutant.breaks, mutant.seed)
      expect(seed).to.be.a('number')
      if (mutant.seed !== undefined && seed !== mutant.seed)
        process.stderr.write(`mutants.ts: ${mutant.name} shows at seed ${seed} now\n`)
    })
  }

  for (const rule of RULES) {
    it(`notices a Postgres without ${rule}`, async () => {
      const likely = RULE_SEEDS[rule]
      const seed = await firstFailure((each) => run(each, { leftOut: rule }), /./, likely)
      expect(seed).to.be.a('number')
      if (seed !== likely) process.stderr.write(`${rule} shows at seed ${seed} now\n`)
    })
  }

  it('refuses a mutant whose text is not in the core exactly once', () => {
    const source = readFileSync(new URL('../../internal/shard/journal/fold.ts', import.meta.url), 'utf8')
    const mutant = { name: 'stale', rule: '', file: 'shard/journal/fold.ts' }
    expect(() => mutate(source, { ...mutant, edits: [['no such text', '']] })).to.throw('0 places')
    expect(() => mutate(source, { ...mutant, edits: [['return false', '']] })).to.throw('places')
  })
})
