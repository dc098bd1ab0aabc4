import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { atOnce, inTurns } from '../../internal/runtime/in-turns.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'

describe('runtime: work in turns', () => {
  const clock = systemClock()
  function* counting(slices: number): Generator<number, string> {
    for (let n = 1; n <= slices; n++) yield n
    return 'done'
  }

  it('does one slice in each turn of the clock, and answers what the work returns', async () => {
    const turns: (() => void)[] = []
    const manual = {
      ...clock,
      after: (_ms: number, task: () => void) => {
        turns.push(task)
        return () => {}
      },
    }
    const taken: number[] = []
    const work = inTurns(manual, counting(3), (slice) => void taken.push(slice))
    for (let turn = 1; turn <= 3; turn++) {
      await setImmediate()
      expect(taken).to.have.length(turn)
      expect(turns).to.have.length(1)
      turns.pop()!()
    }
    expect(await work).to.equal('done')
    expect(taken).to.deep.equal([1, 2, 3])
  })

  it('goes on when a slice is taken', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    let begun = 0
    const work = inTurns(clock, counting(2), () => {
      begun++
      return promise
    })
    await setImmediate()
    await setImmediate()
    expect(begun).to.equal(1)
    resolve()
    await work
    expect(begun).to.equal(2)
  })

  it('fails as the work does, or whoever takes a slice', async () => {
    function* failing(): Generator<number, string> {
      yield 1
      throw new Error('the work')
    }
    const messageOf = (work: Promise<string>) => work.catch((error: Error) => error.message)
    expect(await messageOf(inTurns(clock, failing()))).to.equal('the work')
    expect(await messageOf(inTurns(clock, counting(2), () => Promise.reject(new Error('a slice'))))).to.equal(
      'a slice',
    )
  })

  it('at once answers the same', () => {
    const taken: number[] = []
    expect(atOnce(counting(2), (slice) => taken.push(slice))).to.equal('done')
    expect(taken).to.deep.equal([1, 2])
  })
})
