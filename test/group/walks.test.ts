/**
 * Random walks against the naive group. `WALK_SEED` repeats a run, `WALK_RUNS` sets how many walks it takes.
 */
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { Walk } from './walk.ts'

const seed = Number(process.env.WALK_SEED ?? Math.floor(Math.random() * 2 ** 31))
const runs = Number(process.env.WALK_RUNS ?? 20_000)

function walk(policySeed: number, choices: readonly number[]): void {
  const one = new Walk(policySeed)
  try {
    one.run(choices)
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${one.trace}`, { cause: error })
  }
}

describe('group walks', () => {
  it(`${runs} walks agree with the naive group (WALK_SEED=${seed})`, function () {
    this.timeout(120_000)
    const number = fc.nat({ max: 2 ** 31 - 1 })
    const choices = fc.array(number, { maxLength: 60, size: 'max' })
    fc.assert(fc.property(number, choices, walk), { seed, numRuns: runs })
  })
})
