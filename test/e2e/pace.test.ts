/** How fast a group goes (docs/architecture/protocol.md, "Groups" and "Segments"): segments, concurrency, delays. */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import type { AnalyticsTimeseries } from '../../internal/analytics/analytics.ts'
import { eventually } from '../support/eventually.ts'
import type { SinkAnswer, SinkBehaviour } from '../support/sink.ts'
import { type Channel, type DeliveryBatch, harness, NEVER_DUE, payloadsOf, SOON } from './harness.ts'

describe('a group with a slow destination', function () {
  this.timeout(120_000)
  const on = harness()

  it('goes on in a new segment each time maxGroupItems is reached, and starts again at 0 when it is empty', async () => {
    const channel = await on.channel({
      batch: { ...NEVER_DUE, maxItems: 2 },
      overflow: { maxGroupItems: 3 },
    })
    const gate = closedGate(channel)
    await channel.sendAll(numbered(1, 2))
    await channel.untilRequests(1)
    await channel.sendAll(numbered(3, 9))
    await channel.patch({ batch: { idleTimeoutMs: 100 } })
    gate.open()
    const batches = await channel.untilItems(9)
    expect(batches.map(segmentAndNumbers)).to.deep.equal([
      [0, [1, 2]],
      [0, [3, 4]],
      [0, [5]],
      [1, [6, 7]],
      [1, [8]],
      [2, [9]],
    ])
    const reasons = (await channel.untilEvents('flush', 6)).map(({ reason, segment }) => [reason, segment])
    expect(reasons).to.deep.equal([
      ['items', 0],
      ['items', 0],
      ['segment', 0],
      ['items', 1],
      ['segment', 1],
      ['idle', 2],
    ])
    await untilRecorded(channel, 9)
    await channel.send({ group: 'a', n: 10 })
    const [, , , , , , fresh] = await channel.untilBatches(7)
    expect(segmentAndNumbers(fresh!)).to.deep.equal([0, [10]])
  })

  it('goes on in a new segment each time maxGroupBytes is reached', async () => {
    const channel = await on.channel({
      batch: { ...NEVER_DUE, maxItems: 1 },
      overflow: { maxGroupBytes: 100 },
    })
    const gate = closedGate(channel)
    await channel.sendAll(numbered(1, 1))
    await channel.untilRequests(1)
    const fill = 'x'.repeat(30)
    await channel.sendAll([2, 3, 4, 5].map((n) => ({ group: 'a', n, fill })))
    gate.open()
    const batches = await channel.untilItems(5)
    // Each of the four has 57 bytes: the second one reaches the limit.
    expect(batches.map(segmentAndNumbers)).to.deep.equal([
      [0, [1]],
      [0, [2]],
      [0, [3]],
      [1, [4]],
      [1, [5]],
    ])
  })

  it('has one batch in delivery at a time, and its batches arrive in order', async () => {
    const channel = await on.channel({ batch: { ...SOON, maxItems: 1 } })
    const inFlight = counting(channel, 20)
    await channel.sendAll(numbered(1, 10))
    expect(payloadsOf(await channel.untilItems(10)).map(({ n }) => n)).to.deep.equal(range(1, 10))
    expect(inFlight.most).to.equal(1)
  })

  it('has maxConcurrencyPerGroup batches in delivery at a time, and no more', async () => {
    const channel = await on.channel({
      batch: { ...SOON, maxItems: 1 },
      throughput: { maxConcurrencyPerGroup: 3 },
    })
    const gate = closedGate(channel)
    await channel.sendAll(numbered(1, 12))
    expect(numbersOf(await channel.untilBatches(3))).to.deep.equal([1, 2, 3])
    const inFlight = counting(channel, 300)
    gate.open()
    expect(numbersOf(await channel.untilItems(12))).to.deep.equal(range(1, 12))
    expect(inFlight.most).to.equal(3)
  })

  it('keeps minDelayBetweenFlushMs between its batches', async () => {
    const channel = await on.channel({
      batch: { ...NEVER_DUE, maxItems: 2 },
      throughput: { minDelayBetweenFlushMs: 2_000 },
    })
    await channel.sendAll(numbered(1, 6))
    const requests = await channel.untilRequests(3)
    expect(payloadsOf(channel.batches()).map(({ n }) => n)).to.deep.equal(range(1, 6))
    // The delay is one between flushes: the way to the destination may take longer for the earlier one.
    for (const gap of gaps(requests.map(({ at }) => at))) expect(gap).to.be.at.least(1_000)
  })
})

/** Its destination answers nothing before the gate is opened, then 200. */
function closedGate(channel: Channel): { open(): void } {
  const { promise, resolve } = Promise.withResolvers<SinkAnswer>()
  channel.answer(() => promise)
  return { open: () => resolve({}) }
}

/** Counts the batches that the destination has and has not answered; each takes it `ms`. */
function counting(channel: Channel, ms: number): { most: number } {
  const seen = { most: 0 }
  let now = 0
  const behaviour: SinkBehaviour = async () => {
    now += 1
    seen.most = Math.max(seen.most, now)
    await new Promise((resolve) => setTimeout(resolve, ms))
    now -= 1
    return {}
  }
  channel.answer(behaviour)
  return seen
}

function numbered(from: number, to: number): { group: string; n: number }[] {
  return range(from, to).map((n) => ({ group: 'a', n }))
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}

function numbersOf(batches: readonly DeliveryBatch[]): number[] {
  return payloadsOf(batches)
    .map(({ n }) => n)
    .sort((a, b) => a - b)
}

function segmentAndNumbers(batch: DeliveryBatch): [number, number[]] {
  return [batch.svc.segment, batch.items.map(({ payload }) => payload.n)]
}

function gaps(times: readonly number[]): number[] {
  return times.slice(1).map((at, index) => at - times[index]!)
}

/** Figures come from the records that batches are over: only they make a group empty. */
async function untilRecorded({ api, bufferId }: Channel, items: number): Promise<void> {
  await eventually(async () => {
    const path = `/v1/analytics/timeseries?customerId=e2e&bufferId=${bufferId}`
    const { totals } = await api.expect<AnalyticsTimeseries>(200, 'GET', path)
    expect(totals.itemsDelivered).to.equal(items)
  })
}
