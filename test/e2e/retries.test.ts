/** What becomes of a batch whose destination fails (docs/reference/buffers.md, "Retries"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { inTurn, redirectTo, type SinkRequest } from '../support/sink.ts'
import { batchOf, type Channel, type ChannelFields, countItems, harness, NEVER_DUE } from './harness.ts'

const QUICK_RETRIES: ChannelFields = {
  batch: { ...NEVER_DUE, maxItems: 1 },
  throughput: { maxAttempts: 3, backoff: { initialMs: 100, maxMs: 60_000, multiplier: 1 } },
}

describe('a batch whose destination fails', function () {
  this.timeout(120_000)
  const on = harness()

  it('is sent again as the same bytes under the same key until it is accepted, and the next one waits', async () => {
    const channel = await on.channel(QUICK_RETRIES)
    channel.answer(inTurn({ status: 500 }, { status: 503 }, { status: 204 }, {}))
    await channel.sendAll([
      { group: 'a', n: 1 },
      { group: 'a', n: 2 },
    ])
    const requests = await channel.untilRequests(4)
    expectSame(requests.slice(0, 3))
    expect(channel.batches().map(({ items }) => items[0]!.payload.n)).to.deep.equal([1, 1, 1, 2])
    const deliveries = await channel.untilEvents('delivery', 4)
    expect(
      deliveries.map(({ attempt, outcome, statusCode }) => [attempt, outcome, statusCode]),
    ).to.deep.equal([
      [1, 'retry', 500],
      [2, 'retry', 503],
      [3, 'delivered', 204],
      [1, 'delivered', 200],
    ])
    expect(await channel.api.deadLetters(channel.bufferId)).to.deep.equal([])
  })

  it('is sent again after initialMs * multiplier^(n-1), at most maxMs', async () => {
    const backoff = { initialMs: 100, multiplier: 10, maxMs: 1_500 }
    const channel = await on.channel({ ...QUICK_RETRIES, throughput: { maxAttempts: 4, backoff } })
    channel.answer({ status: 500 })
    await channel.send({ group: 'a' })
    const times = (await channel.untilRequests(4)).map(({ at }) => at)
    const gaps = times.slice(1).map((at, index) => at - times[index]!)
    const due = [100, 1_000, 1_500]
    // Never early but for the clocks' grain; late by what a busy machine may take: without maxMs the last is 10 s.
    gaps.forEach((gap, index) => {
      expect(gap, `gap ${index + 1}`).to.be.within(due[index]! - 5, due[index]! + 5_000)
    })
  })

  const failures = [
    { what: 'resets the connection', answer: { fault: 'reset' }, error: 'connection' },
    { what: 'closes the connection', answer: { fault: 'close' }, error: 'connection' },
    { what: 'breaks off in the head of its answer', answer: { fault: 'half-head' }, error: 'connection' },
    { what: 'answers what is no HTTP', answer: { fault: 'garbage' }, error: 'connection' },
    { what: 'redirects', answer: redirectTo('/elsewhere', 307), error: 'http_other' },
    {
      what: 'answers 500 and breaks off in the body',
      answer: { fault: 'half', status: 500 },
      error: 'http_5xx',
    },
  ] as const
  for (const { what, answer, error } of failures) {
    it(`is sent again when it ${what}`, async () => {
      const channel = await on.channel(QUICK_RETRIES)
      channel.answer(inTurn(answer, {}))
      await channel.send({ group: 'a' })
      expectSame(await channel.untilRequests(2))
      const [failed, accepted] = await channel.untilEvents('delivery', 2)
      expect(failed).to.include({ attempt: 1, outcome: 'retry', errorClass: error })
      expect(accepted).to.include({ attempt: 2, outcome: 'delivered', errorClass: null })
      expect(on.sink.requests('/elsewhere')).to.have.length(0)
    })
  }

  it('is acknowledged by a 2xx, whatever becomes of the body behind it', async () => {
    for (const answer of [
      { fault: 'half', status: 202 },
      { fault: 'endless', status: 299 },
    ] as const) {
      const channel = await on.channel(QUICK_RETRIES)
      channel.answer(answer)
      await channel.send({ group: 'a' })
      const [delivery] = await channel.untilEvents('delivery', 1)
      expect(delivery).to.include({ outcome: 'delivered', statusCode: answer.status })
      await sendNext(channel)
      expect(channel.requests()).to.have.length(2)
    }
  })

  it('is sent to its new destination when that is changed between two attempts', async () => {
    const fields = { ...QUICK_RETRIES, throughput: { maxAttempts: 5, backoff: { initialMs: 300 } } }
    const channel = await on.channel(fields)
    const path = `${channel.path}/moved`
    channel.answer({ status: 500 })
    await channel.send({ group: 'a' })
    await channel.untilRequests(1)
    await channel.patch({ delivery: { url: on.sink.url(path) } })
    await on.sink.waitForCount(1, path)
    expectSame([...channel.requests(), ...on.sink.requests(path)])
  })
})

describe('a destination that does not answer in time', function () {
  this.timeout(120_000)
  const on = harness()

  it('fails the attempt after 10 s, whether it is silent or slow, and gets the batch again', async () => {
    const fields = { ...QUICK_RETRIES, throughput: { maxAttempts: 2, backoff: { initialMs: 0 } } }
    const faults = ['hang', 'slow-head'] as const
    const channels = await Promise.all(faults.map(() => on.channel(fields)))
    channels.forEach((channel, index) => {
      channel.answer(inTurn({ fault: faults[index]! }, {}))
    })
    for (const channel of channels) await channel.send({ group: 'a' })
    for (const channel of channels) {
      const [first, second] = await channel.untilRequests(2, 25_000)
      expectSame([first!, second!])
      expect(second!.at - first!.at).to.be.within(8_000, 20_000)
      const [failed] = await channel.untilEvents('delivery', 1)
      expect(failed).to.include({ attempt: 1, outcome: 'retry', errorClass: 'timeout', statusCode: 0 })
      expect(failed!.durationMs).to.be.within(9_990, 20_000)
    }
  })
})

function expectSame(requests: readonly SinkRequest[]): void {
  const [first] = requests
  for (const { body, headers, method } of requests) {
    expect(body.equals(first!.body), 'the same bytes').to.equal(true)
    expect(headers['x-idempotency-key']).to.equal(first!.headers['x-idempotency-key'])
    expect(method).to.equal(first!.method)
  }
  expect(countItems([batchOf(first!)])).to.equal(1)
}

/** The next batch of a group comes after everything that the one before it had coming. */
async function sendNext(channel: Channel): Promise<void> {
  channel.answer({})
  await channel.send({ group: 'a', next: true })
  await channel.untilRequests(2)
  expect(channel.batches()[1]!.items[0]!.payload.next).to.equal(true)
}
