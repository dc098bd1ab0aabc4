/**
 * When a group is delivered (docs/reference/buffers.md, "Processing"): each trigger alone, and the sizes of batches.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { countItems, harness, NEVER_DUE, payloadsOf, SOON } from './harness.ts'

describe('a group is delivered', function () {
  this.timeout(120_000)
  const on = harness()

  it('when it holds maxItems items, and what follows waits for as many again', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxItems: 3 } })
    await channel.sendAll([1, 2, 3, 4].map((n) => ({ group: 'a', n })))
    await channel.untilBatches(1)
    await channel.sendAll([5, 6].map((n) => ({ group: 'a', n })))
    const batches = await channel.untilBatches(2)
    expect(batches.map((batch) => batch.items.map(({ payload }) => payload.n))).to.deep.equal([
      [1, 2, 3],
      [4, 5, 6],
    ])
    expect(batches.map(({ window }) => window.itemsCount)).to.deep.equal([3, 3])
    const flushes = await channel.untilEvents('flush', 2)
    expect(flushes.map(({ reason, items }) => [reason, items])).to.deep.equal([
      ['items', 3],
      ['items', 3],
    ])
  })

  it('when its payloads total maxBytes bytes', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxBytes: 300 } })
    const payloads = ['a', 'b', 'c'].map((mark) => payloadOf(100, mark))
    await channel.sendAll(payloads.slice(0, 2))
    expect(channel.requests()).to.have.length(0)
    await channel.send(payloads[2]!)
    const [batch] = await channel.untilBatches(1)
    expect(batch!.items.map(({ payload }) => JSON.stringify(payload))).to.deep.equal(payloads)
    const [flush] = await channel.untilEvents('flush', 1)
    expect(flush).to.include({ reason: 'bytes', items: 3, payloadBytes: 300 })
  })

  it('when no item arrived for idleTimeoutMs', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, idleTimeoutMs: 1_500 } })
    await channel.sendAll([{ group: 'a' }, { group: 'a' }])
    const [request] = await channel.untilRequests(1)
    const [batch] = channel.batches()
    expect(batch!.items).to.have.length(2)
    expect(request!.at - batch!.window.lastActivityAt).to.be.at.least(1_495)
    const [flush] = await channel.untilEvents('flush', 1)
    expect(flush).to.include({ reason: 'idle', items: 2 })
  })

  it('when its oldest item waited maxWaitFromFirstMs, though arrivals keep it from being idle', async () => {
    const channel = await on.channel({
      batch: { idleTimeoutMs: 3_000, maxWaitFromFirstMs: 3_500, maxItems: 10_000 },
    })
    while (channel.requests().length === 0) {
      await channel.send({ group: 'a' })
      // Not so many that they fill a segment.
      await delay(20)
    }
    const [request] = channel.requests()
    const [batch] = channel.batches()
    const times = batch!.items.map(({ receivedAt }) => receivedAt)
    expect(Math.max(...times.slice(1).map((at, i) => at - times[i]!)), 'premise: never idle').to.be.below(
      3_000,
    )
    expect(request!.at - batch!.window.firstItemAt).to.be.at.least(3_495)
    const [flush] = await channel.untilEvents('flush', 1)
    expect(flush).to.include({ reason: 'max_wait', items: batch!.items.length })
    expect(batch!.items.length).to.be.at.least(10)
  })

  it('in batches of at most maxItems and maxBytes, in the order of arrival', async () => {
    const channel = await on.channel({ batch: { ...SOON, maxItems: 7, maxBytes: 1_000 } })
    const sizes = Array.from({ length: 60 }, (_, index) => 60 + ((index * 137) % 400))
    const payloads = sizes.map((size, index) => payloadOf(size, `${index}-`))
    await channel.sendAll(payloads)
    const batches = await channel.untilItems(60)
    expect(payloadsOf(batches).map((payload) => JSON.stringify(payload))).to.deep.equal(payloads)
    for (const batch of batches) {
      expect(batch.items.length).to.be.at.most(7)
      expect(bytesOf(batch.items)).to.be.at.most(1_000)
    }
    const flushes = await channel.untilEvents('flush', batches.length)
    expect(flushes.map(({ items, payloadBytes }) => [items, payloadBytes])).to.deep.equal(
      batches.map(({ items }) => [items.length, bytesOf(items)]),
    )
  })

  it('with an item that is larger than maxBytes in a batch of its own', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxBytes: 300 } })
    const payloads = [payloadOf(80, 'a'), payloadOf(5_000, 'large'), payloadOf(80, 'b'), payloadOf(80, 'c')]
    await channel.sendAll(payloads)
    await channel.patch({ batch: { idleTimeoutMs: 100 } })
    const batches = await channel.untilItems(4)
    expect(batches.map(({ items }) => items.map(({ payload }) => JSON.stringify(payload)))).to.deep.equal([
      [payloads[0]],
      [payloads[1]],
      [payloads[2], payloads[3]],
    ])
  })

  it('apart from all others: one key, one group, in the order of its own arrivals', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE, maxItems: 4 } })
    const groups = Array.from({ length: 50 }, (_, index) => `group ${index} é"\\`)
    const sendTo = (group: string) => channel.sendAll([0, 1, 2, 3].map((n) => ({ group, n })))
    await Promise.all(groups.map(sendTo))
    const batches = await channel.untilBatches(50)
    expect(batches.map(({ svc }) => svc.groupKey).sort()).to.deep.equal(groups.sort())
    expect(new Set(batches.map(({ svc }) => svc.groupHash)).size).to.equal(50)
    for (const { svc, items } of batches) {
      expect(items.map(({ payload }) => payload)).to.deep.equal(
        [0, 1, 2, 3].map((n) => ({ group: svc.groupKey, n })),
      )
    }
  })

  it('by its new configuration as soon as that is stored, though it was open before', async () => {
    const channel = await on.channel({ batch: { ...NEVER_DUE } })
    await channel.sendAll(Array.from({ length: 5 }, (_, n) => ({ group: 'a', n })))
    await channel.patch({ batch: { maxItems: 2 } })
    const batches = await channel.untilBatches(2)
    expect(batches.map((batch) => payloadsOf([batch]).map(({ n }) => n))).to.deep.equal([
      [0, 1],
      [2, 3],
    ])
    await channel.patch({ batch: { idleTimeoutMs: 100 } })
    await channel.untilBatches(3)
    expect(countItems(channel.batches())).to.equal(5)
    const flushes = await channel.untilEvents('flush', 3)
    expect(flushes.map(({ reason }) => reason)).to.deep.equal(['items', 'items', 'idle'])
  })
})

/** JSON text of exactly `bytes` bytes, of group `a`. */
function payloadOf(bytes: number, mark: string): string {
  const empty = JSON.stringify({ group: 'a', mark, fill: '' })
  return JSON.stringify({ group: 'a', mark, fill: 'x'.repeat(bytes - empty.length) })
}

function bytesOf(items: readonly { payload: unknown }[]): number {
  return items.reduce((sum, { payload }) => sum + JSON.stringify(payload).length, 0)
}
