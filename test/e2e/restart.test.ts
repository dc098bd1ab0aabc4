/**
 * What a service finds again after its end (docs/architecture/protocol.md, "Restored batches"): everything, and where
 * it was.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'

import type { Accepted } from '../support/api.ts'
import { createInstallation } from '../support/service.ts'
import { batchOf, type Channel, type Harness, harness, NEVER_DUE, payloadsOf } from './harness.ts'

/** One shard: what is committed later in the journal proves that what came before is committed too. */
const ONE_SHARD = { PENSTOCK_SHARDS: '1' }
const BACK_OFF_MS = 10_000
/** From an end to the next start: a back-off that began anew there would end so much later than it is due. */
const AWAY_MS = 5_000
const AT_ONCE = { ...NEVER_DUE, maxItems: 1 }
/** Attempts that one buffer alone gets of an origin's 64 connections. */
const RUNNING_AT_ONCE = 48

describe('after SIGTERM and a new start', function () {
  this.timeout(120_000)
  const on = ownHarness()
  let buffered: Channel
  let inFlight: Channel
  let backingOff: Channel
  let held: Channel
  let busy: Channel
  let sent: Accepted[]
  let late: Accepted[][]
  let stopped: { code: number | string | null; ms: number }
  let healthyAt: number

  before(async () => {
    buffered = await on.channel({ batch: NEVER_DUE })
    inFlight = await on.channel({ batch: AT_ONCE })
    held = await on.channel({ batch: NEVER_DUE })
    busy = await on.channel({ batch: { ...NEVER_DUE, maxItems: 5 } })
    sent = await buffered.sendAll(numbered(60))
    await held.sendAll(numbered(3))
    await held.patch({ enabled: false, batch: { maxItems: 1 } })
    backingOff = await failing(on, 2)
    inFlight.answer({ delayMs: 700 })
    await inFlight.sendAll(inOneGroup(2))
    await inFlight.untilRequests(1)
    const senders = ['a', 'b', 'c'].map((group) => sendUntilRefused(busy, group))
    await busy.untilRequests(6)
    const since = performance.now()
    stopped = { code: await on.installation.stop(), ms: performance.now() - since }
    late = await Promise.all(senders)
    await delay(AWAY_MS)
    await on.installation.start()
    healthyAt = Date.now()
  })

  it('the end was in good order: 0, within 15 s', () => {
    expect(stopped.code, on.installation.output()).to.equal(0)
    expect(stopped.ms).to.be.below(15_000)
  })

  it('an item that was buffered is still a duplicate, and everything is delivered once and in order', async () => {
    const again = await buffered.send({ group: 'g0', n: 'again', messageId: 'm0' })
    expect(again).to.deep.equal({ ...sent[0], duplicate: true })
    await buffered.patch({ batch: { maxItems: 1 } })
    expectEachOnce(await buffered.untilBatches(60), numbered(60))
  })

  it('a batch that was in flight was finished, and the one behind it follows', async () => {
    expectEachOnce(await inFlight.untilBatches(2), inOneGroup(2))
  })

  it('whatever was answered 202 until the end is delivered once and in order, and nothing else', async () => {
    await busy.patch({ batch: { maxItems: 1 } })
    for (const [index, group] of ['a', 'b', 'c'].entries()) late[index]!.push(await busy.send({ group }))
    const batches = await busy.untilItems(late.flat().length)
    for (const [index, group] of ['a', 'b', 'c'].entries()) {
      const ids = batches
        .filter(({ svc }) => svc.groupKey === group)
        .flatMap(({ items }) => items.map(({ messageId }) => messageId))
      expect(ids).to.deep.equal(late[index]!.map(({ messageId }) => messageId))
    }
  })

  it('a disabled buffer still holds, and goes on when it is enabled', async () => {
    expect(held.requests()).to.have.length(0)
    await held.patch({ enabled: true })
    expectEachOnce(await held.untilBatches(3), numbered(3))
  })

  it('a batch in back-off is sent again at its time, as the attempt that was due', async () => {
    await expectSecondAttempt(backingOff, healthyAt)
    const [dead] = await backingOff.untilDead()
    expect(dead).to.include({ reason: 'max_retries_exceeded', attempt: 1, lastStatusCode: 500 })
    expect(backingOff.requests()).to.have.length(2)
  })

  it('each accepted item was paid once', async () => {
    const all = sent.length + late.flat().length + 2 + 3 + 1
    expect((await on.api.credits()).credits).to.equal(100_000 - all)
  })
})

describe('after SIGKILL and a new start', function () {
  this.timeout(120_000)
  const on = ownHarness()
  let buffered: Channel
  let inFlight: Channel
  let backingOff: Channel
  let sent: Accepted[]
  let healthyAt: number

  before(async () => {
    buffered = await on.channel({ batch: NEVER_DUE })
    inFlight = await on.channel({ batch: AT_ONCE })
    const marker = await on.channel({ batch: AT_ONCE })
    sent = await buffered.sendAll(numbered(60))
    inFlight.answer({ fault: 'hang' })
    backingOff = await failing(on, 3)
    await inFlight.sendAll(inOneGroup(2))
    await inFlight.untilRequests(1)
    await marker.send({ group: 'a' })
    await marker.untilRequests(1)
    expect(await on.installation.stop('SIGKILL')).to.equal('SIGKILL')
    inFlight.answer({})
    await delay(AWAY_MS)
    await on.installation.start()
    healthyAt = Date.now()
  })

  it('the batch in flight is sent again, byte for byte under its key, and the one behind it once', async () => {
    const [first, again, next] = await inFlight.untilRequests(3)
    expect(again!.body.equals(first!.body)).to.equal(true)
    expect(again!.headers['x-idempotency-key']).to.equal(first!.headers['x-idempotency-key'])
    expect(batchOf(next!).items.map(({ payload }) => payload)).to.deep.equal(inOneGroup(2).slice(1))
  })

  it('an item that was buffered is still a duplicate, and everything is delivered once and in order', async () => {
    const again = await buffered.send({ group: 'g0', n: 'again', messageId: 'm0' })
    expect(again).to.deep.equal({ ...sent[0], duplicate: true })
    await buffered.patch({ batch: { maxItems: 1 } })
    expectEachOnce(await buffered.untilBatches(60), numbered(60))
  })

  it('a batch in back-off goes on with the attempt that was due, over another kill too', async () => {
    await expectSecondAttempt(backingOff, healthyAt)
    const marker = await on.channel({ batch: AT_ONCE })
    await backingOff.untilEvents('delivery', 2)
    await marker.send({ group: 'a' })
    await marker.untilRequests(1)
    await on.installation.stop('SIGKILL')
    await on.installation.start()
    const [dead] = await backingOff.untilDead(1, 30_000)
    expect(dead).to.include({ reason: 'max_retries_exceeded', attempt: 2, lastStatusCode: 500 })
    const requests = backingOff.requests()
    expect(requests).to.have.length(3)
    expect(new Set(requests.map(({ body }) => body.toString())).size).to.equal(1)
    expect(await backingOff.api.deadBatch(dead!.dlqId)).to.equal(requests[0]!.body.toString())
  })
})

describe('SIGTERM while a destination hangs', function () {
  this.timeout(120_000)
  const on = ownHarness({ shared: true })

  it('waits for what runs, begins nothing, ends with 0 within 15 s, and the next start goes on', async () => {
    const channel = await on.channel({
      batch: AT_ONCE,
      throughput: { maxAttempts: 2, backoff: { initialMs: 100 } },
    })
    channel.answer({ fault: 'hang' })
    const groups = Array.from({ length: 60 }, (_, n) => `g${n}`)
    await Promise.all(groups.map((group) => channel.send({ group })))
    await channel.untilRequests(RUNNING_AT_ONCE)
    const since = performance.now()
    expect(await on.installation.stop(), on.installation.output()).to.equal(0)
    expect(performance.now() - since).to.be.below(15_000)
    const begun = channel.batches().map(({ svc }) => svc.groupKey)
    expect(begun).to.have.length(RUNNING_AT_ONCE)
    channel.answer({})
    await on.installation.start()
    const batches = await channel.untilBatches(RUNNING_AT_ONCE + groups.length)
    expect(batches.map(({ svc }) => svc.groupKey).sort()).to.deep.equal([...groups, ...begun].sort())
    const bodies = new Set(channel.requests().map(({ body }) => body.toString()))
    expect(bodies.size, 'an attempt more is no other body').to.equal(groups.length)
  })
})

/** An installation of its own; on embedded servers, which end and start with it, unless `shared`. */
function ownHarness({ shared = false } = {}): Harness {
  return harness({
    installation: async () => {
      const installation = await createInstallation({ shared, env: ONE_SHARD })
      await installation.start()
      return installation
    },
  })
}

/** A buffer whose only batch has failed once and waits `BACK_OFF_MS` for its next attempt. */
async function failing(on: Harness, maxAttempts: number): Promise<Channel> {
  const channel = await on.channel({
    batch: AT_ONCE,
    throughput: { maxAttempts, backoff: { initialMs: BACK_OFF_MS, multiplier: 1 } },
  })
  channel.answer({ status: 500 })
  await channel.send({ group: 'a' })
  await channel.untilEvents('delivery', 1)
  return channel
}

/** Not before its time, and no later than a service that found it late would begin it. */
async function expectSecondAttempt(channel: Channel, healthyAt: number): Promise<void> {
  const [first, second] = await channel.untilRequests(2, 30_000)
  expect(second!.at - first!.at).to.be.at.least(BACK_OFF_MS - 5)
  expect(second!.at).to.be.below(Math.max(first!.at + BACK_OFF_MS, healthyAt) + AWAY_MS)
}

/** Twenty groups by turns, with ids of their own. */
function numbered(count: number): { group: string; n: number; messageId: string }[] {
  return Array.from({ length: count }, (_, n) => ({ group: `g${n % 20}`, n, messageId: `m${n}` }))
}

function inOneGroup(count: number): { group: string; n: number }[] {
  return Array.from({ length: count }, (_, n) => ({ group: 'a', n }))
}

/** Sends one item after the other until the service is gone; what was accepted. */
async function sendUntilRefused(channel: Channel, group: string): Promise<Accepted[]> {
  const accepted: Accepted[] = []
  for (;;) {
    const answer = await channel.ingest({ group }).catch(() => undefined)
    if (answer?.status !== 202) return accepted
    accepted.push(answer.json())
  }
}

/** Every payload arrived exactly once, those of a group in their order. */
function expectEachOnce(batches: ReturnType<Channel['batches']>, wanted: readonly { group: string }[]): void {
  const byGroup = (payloads: readonly { group: string }[]) => Object.groupBy(payloads, ({ group }) => group)
  expect(byGroup(payloadsOf(batches))).to.deep.equal(byGroup(wanted))
}
