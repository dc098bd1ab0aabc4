/** Payload bytes in memory: for how long they are kept, and how they are had again. Pure, with a broker that is a function. */
import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { CachedMessage, PayloadCache } from '../../../internal/shard/held/payload-cache.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'

const BYTES = 100

function liveMessage(seq: number): CachedMessage {
  const message = new CachedMessage('inbox', seq)
  message.live = 1
  return message
}

/** `budget`: of messages of 100 bytes. */
function memory(budget: number, load?: (seq: number) => Promise<void>) {
  const clock = new ManualClock()
  const loads: number[] = []
  const read = async (_: unknown, seq: number) => {
    loads.push(seq)
    await load?.(seq)
    return { seq, at: 0, data: Buffer.alloc(BYTES, seq), msgId: null }
  }
  const payloads = new PayloadCache({ payloadBudget: budget * BYTES, payloadMs: 60_000 }, clock, read)
  return { clock, payloads, loads }
}

describe('shard: the payload cache', () => {
  it('gives up what has been kept for its time, and nothing before', () => {
    const { clock, payloads } = memory(10)
    payloads.offer(liveMessage(1), Buffer.alloc(BYTES))
    clock.advance(30_000)
    payloads.offer(liveMessage(2), Buffer.alloc(BYTES))
    clock.advance(30_000)
    payloads.giveUpOld()
    expect(payloads.residentBytes).to.equal(2 * BYTES)
    clock.advance(2_000)
    payloads.giveUpOld()
    expect(payloads.residentBytes).to.equal(BYTES)
    clock.advance(30_000)
    payloads.giveUpOld()
    expect(payloads.residentBytes).to.equal(0)
  })

  it('keeps nothing of a message when none of its items is live', () => {
    const { payloads } = memory(10)
    const message = new CachedMessage('inbox', 1)
    payloads.lend(message, Buffer.alloc(BYTES))
    payloads.offer(message, Buffer.alloc(BYTES))
    expect([message.data, payloads.residentBytes]).to.deep.equal([null, 0])
  })

  it('keeps the first messages of a replay when the budget is full', () => {
    const { payloads } = memory(2)
    const messages = [1, 2, 3, 4].map(liveMessage)
    const kept = () => messages.filter(({ data }) => data !== null).map(({ seq }) => seq)
    for (const message of messages.slice(0, 3)) payloads.offer(message, Buffer.alloc(BYTES), true)
    expect(kept()).to.deep.equal([1, 2])
    payloads.offer(messages[3]!, Buffer.alloc(BYTES))
    expect(kept()).to.deep.equal([2, 4])
  })

  it('gives up what was read again past the budget, too', async () => {
    const { clock, payloads } = memory(16)
    for (let seq = 1; seq <= 16; seq++) payloads.offer(liveMessage(seq), Buffer.alloc(BYTES))
    await payloads.with([{ message: liveMessage(17) }], () => {})
    clock.advance(62_000)
    payloads.giveUpOld()
    expect(payloads.residentBytes).to.equal(0)
  })

  it('reads a message once for all who need it at a time', async () => {
    const { payloads, loads } = memory(10)
    const message = liveMessage(7)
    const used = Array.from({ length: 3 }, () => payloads.with([{ message }], (data) => data(message)[0]))
    expect(await Promise.all(used)).to.deep.equal([7, 7, 7])
    expect(loads).to.deep.equal([7])
  })

  it('lends bytes in the turn in which all are there: whenever an item moves, its bytes are at hand', async () => {
    for (let ticks = 0; ticks < 20; ticks++) {
      const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
      const { payloads } = memory(10, (seq) => (seq === 1 ? answered : Promise.resolve()))
      const item = { message: liveMessage(1) }
      const used = payloads.with([item], (data) => data(item.message)?.[0])
      await setImmediate()
      answer()
      for (let tick = 0; tick < ticks; tick++) await null
      item.message = liveMessage(2)
      expect(await used, `moved after ${ticks} ticks`).to.be.oneOf([1, 2])
    }
  })
})
