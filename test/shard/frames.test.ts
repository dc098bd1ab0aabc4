/** Payload bytes in memory: for how long they are kept, and how they are had again. Pure, with a broker that is a function. */
import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Frame, Frames } from '../../internal/shard/frames.ts'
import { ManualClock } from '../delivery/manual-clock.ts'

const BYTES = 100

function liveFrame(seq: number): Frame {
  const frame = new Frame('inbox', seq)
  frame.live = 1
  return frame
}

/** `budget`: of frames of 100 bytes. */
function memory(budget: number, load?: (seq: number) => Promise<void>) {
  const clock = new ManualClock()
  const loads: number[] = []
  const frames = new Frames({ budget: budget * BYTES, keepMs: 60_000 }, clock, async (_, seq) => {
    loads.push(seq)
    await load?.(seq)
    return { seq, at: 0, data: Buffer.alloc(BYTES, seq), subject: '', msgId: null }
  })
  return { clock, frames, loads }
}

describe('shard: frames', () => {
  it('give up what has been kept for its time, and nothing before', () => {
    const { clock, frames } = memory(10)
    frames.offer(liveFrame(1), Buffer.alloc(BYTES))
    clock.advance(30_000)
    frames.offer(liveFrame(2), Buffer.alloc(BYTES))
    clock.advance(30_000)
    frames.giveUpOld()
    expect(frames.residentBytes).to.equal(2 * BYTES)
    clock.advance(2_000)
    frames.giveUpOld()
    expect(frames.residentBytes).to.equal(BYTES)
    clock.advance(30_000)
    frames.giveUpOld()
    expect(frames.residentBytes).to.equal(0)
  })

  it('give up what was read again past the budget, too', async () => {
    const { clock, frames } = memory(16)
    for (let seq = 1; seq <= 16; seq++) frames.offer(liveFrame(seq), Buffer.alloc(BYTES))
    await frames.with([{ frame: liveFrame(17) }], () => {})
    clock.advance(62_000)
    frames.giveUpOld()
    expect(frames.residentBytes).to.equal(0)
  })

  it('are read once for all who need one at a time', async () => {
    const { frames, loads } = memory(10)
    const frame = liveFrame(7)
    const used = Array.from({ length: 3 }, () => frames.with([{ frame }], (data) => data(frame)[0]))
    expect(await Promise.all(used)).to.deep.equal([7, 7, 7])
    expect(loads).to.deep.equal([7])
  })

  it('are used in the turn in which all is there: whenever an item moves, its bytes are at hand', async () => {
    for (let ticks = 0; ticks < 20; ticks++) {
      const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
      const { frames } = memory(10, (seq) => (seq === 1 ? answered : Promise.resolve()))
      const item = { frame: liveFrame(1) }
      const used = frames.with([item], (data) => data(item.frame)?.[0])
      await setImmediate()
      answer()
      for (let tick = 0; tick < ticks; tick++) await null
      item.frame = liveFrame(2)
      expect(await used, `moved after ${ticks} ticks`).to.be.oneOf([1, 2])
    }
  })
})
