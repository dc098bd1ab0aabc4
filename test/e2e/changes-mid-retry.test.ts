/** A buffer that is changed or deleted while one of its batches waits for its next attempt (fault matrix, row 19). */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { sign } from '../../internal/domain/signature.ts'
import { eventually } from '../support/eventually.ts'
import { inTurn, type SinkRequest } from '../support/sink.ts'
import { type Channel, type ChannelFields, harness, NEVER_DUE } from './harness.ts'

const IN_BACK_OFF: ChannelFields = {
  batch: { ...NEVER_DUE, maxItems: 2 },
  throughput: { maxAttempts: 5, backoff: { initialMs: 1_000, maxMs: 1_000, multiplier: 1 } },
}

describe('a batch in back-off whose buffer', function () {
  this.timeout(120_000)
  const on = harness()

  /** Failed once at least, and will be sent again. */
  async function failing(fields: ChannelFields = {}): Promise<Channel> {
    const channel = await on.channel({ ...IN_BACK_OFF, ...fields })
    channel.answer({ status: 500 })
    await channel.sendAll([
      { group: 'a', n: 1 },
      { group: 'a', n: 2 },
    ])
    await channel.untilRequests(1)
    return channel
  }

  it('gets another secret is signed with that one: the same body under the same key', async () => {
    const signing = (secret: string) => ({
      signing: { type: 'hmac-sha256' as const, secret, header: 'x-sig' },
    })
    const channel = await failing({ delivery: signing('before') })
    await channel.patch({ delivery: signing('after') })
    const failed = channel.requests().length
    channel.answer({})
    const requests = await channel.untilRequests(failed + 1)
    const last = requests.at(-1)!
    expectOneBatch(requests)
    expect(requests[0]!.headers['x-sig']).to.equal(sign('before', last.body))
    expect(last.headers['x-sig']).to.equal(sign('after', last.body))
  })

  it('is deleted while enabled is delivered with the last configuration, under its key', async () => {
    const channel = await failing()
    await channel.remove()
    const refused = await channel.ingest({ group: 'a', n: 3 })
    expect(refused.status).to.equal(404)
    channel.answer(inTurn({ status: 503 }, {}))
    const failed = channel.requests().length
    expectOneBatch(await channel.untilRequests(failed + 2))
    const [delivered] = (await channel.untilEvents('delivery', failed + 2)).filter(
      ({ outcome }) => outcome === 'delivered',
    )
    expect(delivered).to.include({ items: 2, statusCode: 200 })
  })

  it('is deleted while enabled becomes a dead letter when it fails for good', async () => {
    const channel = await failing()
    await channel.remove()
    channel.answer({ status: 400 })
    const [item] = await channel.untilDead()
    expect(item).to.include({ itemCount: 2, lastStatusCode: 400, reason: 'non_retryable_error' })
    expectOneBatch(channel.requests())
  })

  it('is deleted while disabled is discarded: its items are counted, and nothing is sent any more', async () => {
    const channel = await failing()
    await channel.send({ group: 'a', n: 3 })
    await channel.patch({ enabled: false })
    await channel.remove()
    await eventually(() => {
      const items = channel.events('discarded').map((event) => Number(event.items))
      expect(items.reduce((sum, count) => sum + count, 0)).to.equal(3)
    })
    const attempts = channel.requests().length
    channel.answer({})
    // Twice its back-off later, as another buffer's retries tell.
    const control = await failing()
    await control.untilRequests(3)
    expect(channel.requests()).to.have.length(attempts)
    expect(channel.events('dead')).to.deep.equal([])
  })
})

function expectOneBatch(requests: readonly SinkRequest[]): void {
  expect(new Set(requests.map(({ headers }) => headers['x-idempotency-key'])).size).to.equal(1)
  expect(new Set(requests.map(({ body }) => body.toString())).size).to.equal(1)
}
