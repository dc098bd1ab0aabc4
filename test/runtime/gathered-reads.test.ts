import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Clock } from '../../internal/runtime/clock.ts'
import { createGatheredReads } from '../../internal/runtime/gathered-reads.ts'

/** Reads and time in the test's hands. */
function scripted(options: { maxKeys?: number } = {}) {
  const flights: {
    keys: string[]
    answer(found: [string, string | Error][]): void
    fail(error: Error): void
  }[] = []
  const deadlines = new Set<() => void>()
  const kept: string[] = []
  const clock: Clock = {
    now: () => 0,
    monotonic: () => 0,
    after(_ms, task) {
      deadlines.add(task)
      return () => deadlines.delete(task)
    },
  }
  const reads = createGatheredReads<string>({
    read: (keys) =>
      new Promise((resolve, reject) => {
        flights.push({ keys: [...keys], answer: (found) => resolve(new Map(found)), fail: reject })
      }),
    identity: (value) => value.split('@')[0]!,
    keep: (value) => kept.push(value),
    clock,
    ...options,
  })
  const expire = () => {
    const due = [...deadlines]
    deadlines.clear()
    for (const task of due) task()
  }
  return { reads, flights, kept, deadlines, expire }
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('gathered reads', () => {
  it('have one read in flight, and the next takes all who came meanwhile', async () => {
    const { reads, flights } = scripted()
    const answers = ['a', 'b', 'c', 'b'].map((key) => reads.get(key))
    expect(flights.map(({ keys }) => keys)).to.deep.equal([['a']])
    flights[0]?.answer([['a', 'a@1']])
    await turn()
    expect(flights.map(({ keys }) => keys)).to.deep.equal([['a'], ['b', 'c']])
    flights[1]?.answer([['b', 'b@1']])
    expect(await Promise.all(answers)).to.deep.equal(['a@1', 'b@1', undefined, 'b@1'])
  })

  it('never answer from a read that began before the question', async () => {
    const { reads, flights } = scripted()
    const early = reads.get('a')
    const late = reads.get('a')
    flights[0]?.answer([])
    expect(await early).to.equal(undefined)
    await turn()
    flights[1]?.answer([['a', 'a@1']])
    expect(await late).to.equal('a@1')
  })

  it('split what is more than one statement should hold', async () => {
    const { reads, flights } = scripted({ maxKeys: 2 })
    const answers = ['a', 'b', 'c', 'd', 'e'].map((key) => reads.get(key))
    for (let n = 0; n < 3; n++) {
      flights[n]?.answer([])
      await turn()
    }
    await Promise.all(answers)
    expect(flights.map(({ keys }) => keys.length)).to.deep.equal([1, 2, 2])
  })

  it('keep and hand over nothing that changed during the read', async () => {
    const { reads, flights, kept } = scripted()
    const answer = reads.get('key')
    reads.changed(['a'])
    flights[0]?.answer([['key', 'a@1']])
    await turn()
    reads.allChanged()
    flights[1]?.answer([['key', 'a@2']])
    await turn()
    reads.changed(['other'])
    flights[2]?.answer([['key', 'a@3']])
    expect(await answer).to.equal('a@3')
    expect(kept).to.deep.equal(['a@3'])
  })

  it('fail all of a read that fails or takes too long, and go on with the next', async () => {
    const { reads, flights, expire, deadlines } = scripted()
    const failed = reads.get('a').catch((error) => error.message)
    const late = reads.get('b').catch((error) => error.name)
    flights[0]?.fail(new Error('away'))
    expect(await failed).to.equal('away')
    await turn()
    expire()
    expect(await late).to.equal('DeadlineError')
    const next = reads.get('c')
    await turn()
    flights[2]?.answer([['c', 'c@1']])
    expect(await next).to.equal('c@1')
    expect(deadlines.size).to.equal(0)
  })
})
