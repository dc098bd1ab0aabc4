import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { loopTurn } from '../../internal/runtime/loop-turn.ts'

describe('the turn of the event loop', () => {
  it('is the same until all that is ready has run, and another one afterwards', async () => {
    await nextTurn()
    const turn = loopTurn()
    await Promise.resolve()
    expect(loopTurn()).to.equal(turn)
    await new Promise<void>((resolve) => process.nextTick(resolve))
    expect(loopTurn()).to.equal(turn)
    await nextTurn()
    expect(loopTurn()).to.equal(turn + 1)
  })

  it('is another one after several of which nobody asked', async () => {
    const turn = loopTurn()
    for (let n = 0; n < 3; n++) await nextTurn()
    expect(loopTurn()).to.be.above(turn)
  })
})
