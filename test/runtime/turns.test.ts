import { expect } from 'chai'
import { describe, it } from 'mocha'
import { ENTRIES_A_TURN, jsonInTurns, mapInTurns } from '../../internal/runtime/turns.ts'

/** Turns of the event loop that others had while `work` ran. */
async function turnsOfOthers(work: Promise<unknown>): Promise<number> {
  let turns = 0
  let next = setImmediate(function count() {
    turns++
    next = setImmediate(count)
  })
  await work
  clearImmediate(next)
  return turns
}

describe('runtime: long lists in turns', () => {
  const numbers = (length: number) => Array.from({ length }, (_, n) => n)

  for (const length of [0, 1, ENTRIES_A_TURN, ENTRIES_A_TURN + 1, 10 * ENTRIES_A_TURN + 7]) {
    it(`${length} entries give the same as at once`, async () => {
      const values = numbers(length)
      expect(await mapInTurns(values, (n) => n * 2)).to.deep.equal(values.map((n) => n * 2))
      const entries = values.map((n) => ({ n, text: `"ä\u2028${n}`, absent: undefined, nothing: null }))
      expect((await jsonInTurns(entries)).toString()).to.equal(`${JSON.stringify(entries)}\n`)
    })
  }

  it('others have their turn after each piece', async () => {
    const values = numbers(20 * ENTRIES_A_TURN)
    // The first and the last are a matter of who came first.
    expect(await turnsOfOthers(mapInTurns(values, (n) => n))).to.be.within(17, 21)
    expect(await turnsOfOthers(jsonInTurns(values))).to.be.within(17, 21)
  })

  it('others have their turn after each piece of a short list whose entries are large', async () => {
    const entries = Array.from({ length: 20 }, (_, n) => ({ n, text: 'ä'.repeat(300_000) }))
    const written = jsonInTurns(entries)
    expect(await turnsOfOthers(written)).to.be.within(17, 21)
    expect((await written).toString()).to.equal(`${JSON.stringify(entries)}\n`)
  })

  it('what JSON lacks is null in a list', async () => {
    expect((await jsonInTurns([undefined, 1])).toString()).to.equal('[null,1]\n')
  })

  it('a turn takes as few entries as it is told', async () => {
    expect(await turnsOfOthers(mapInTurns(numbers(20), (n) => n, 1))).to.be.within(17, 21)
  })

  it('an error of one entry is the error of the whole', async () => {
    const failing = mapInTurns(numbers(3 * ENTRIES_A_TURN), (n) => {
      if (n === 2 * ENTRIES_A_TURN) throw new Error('no such entry')
      return n
    })
    expect(await failing.catch((error: Error) => error.message)).to.equal('no such entry')
  })
})
