/** Manual retries on a real Postgres, over a real client, to a real destination. */
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { LookupWithheldError } from '../../internal/delivery/dns/failure.ts'
import { WAIT_MS } from '../../internal/dlq/retry.ts'
import { sign } from '../../internal/domain/signature.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { newClient } from '../delivery/fixture.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { principal } from '../support/accounts.ts'
import { eventually } from '../support/eventually.ts'
import type { SinkAnswer } from '../support/sink.ts'
import { acme, refused, retriesOfEachTest } from './retries.ts'

describe('dlq: manual retry', () => {
  const here = retriesOfEachTest()

  describe('that the destination accepts', () => {
    it('sends the very bytes under their own key to the present configuration, and removes the item', async () => {
      const body = Buffer.from('{"items":[{"payload":{"n":1.50,"n":2, "z":"\u00e9"}}]}')
      const batch = await here.writeDeadLetter({ body, itemCount: 3, version: 42 })
      await here.node.buffers.update(acme, here.bufferId, {
        delivery: {
          url: here.sink.url('/second?x=1'),
          method: 'PUT',
          headers: { 'x-tenant': 'blue' },
          idempotencyHeader: 'x-once',
          signing: { type: 'hmac-sha256', secret: 'old', header: 'x-sig' },
        },
      })
      await here.node.buffers.update(acme, here.bufferId, { delivery: { signing: { secret: 'current' } } })
      here.sink.otherwise({ status: 202, body: 'thanks' })
      const report = await here.retry(batch.dlqId)
      expect(report).to.deep.equal({
        success: true,
        status: 'delivered',
        message: 'The destination accepted the batch of 3 items',
        dlqId: batch.dlqId,
        itemCount: 3,
        statusCode: 202,
        durationMs: report.durationMs,
      })
      expect(report.durationMs).to.be.within(0, 10_000)
      expect(here.toldOf(batch.dlqId).map(({ durationMs: _, ...event }) => event)).to.deep.equal([
        {
          dlqId: batch.dlqId,
          bufferId: here.bufferId,
          items: 3,
          delivered: true,
          statusCode: 202,
          error: null,
        },
      ])
      const [request, ...more] = here.sink.requests()
      expect(more).to.deep.equal([])
      expect([request!.method, request!.path]).to.deep.equal(['PUT', '/second?x=1'])
      expect(Buffer.compare(request!.body, body)).to.equal(0)
      expect(request!.headers).to.include({
        'x-once': `grp:${batch.groupId}:v42`,
        'x-tenant': 'blue',
        'x-sig': sign('current', body),
      })
      expect(await refused(here.read(batch.dlqId))).to.deep.equal({
        status: 404,
        error: 'DLQ item not found',
      })
      expect((await refused(here.retry(batch.dlqId))).status).to.equal(404)
      expect(await here.node.db`SELECT FROM dlq_items WHERE dlq_id = ${batch.dlqId}`).to.have.length(0)
    })

    it('looks the name up at the expense of its customer', async () => {
      const batch = await here.writeDeadLetter()
      const url = here.sink.url('/', 'sink.test')
      await here.node.buffers.update(acme, here.bufferId, { delivery: { url } })
      const payers: string[] = []
      here.client = newClient({
        resolve: async (_, customerId) => {
          payers.push(customerId)
          return [{ address: '127.0.0.1', family: 4 }]
        },
      })
      expect(await here.retry(batch.dlqId)).to.include({ success: true })
      expect(payers).to.deep.equal(['acme'])
    })

    it('leaves a tombstone only while the journal may not have recorded the death', async () => {
      for (const [recorded, tombstones] of [
        [false, 1],
        [true, 0],
      ] as const) {
        const batch = await here.writeDeadLetter()
        const name = { groupId: batch.groupId, version: batch.version }
        if (recorded) await createDeadLetters(here.node.db).forgetTombstones({ shard: 1, epoch: 1 }, [name])
        await here.retry(batch.dlqId)
        const left = await here.node.db`SELECT FROM dlq_tombstones WHERE group_id = ${batch.groupId}`
        expect(left).to.have.length(tombstones)
      }
    })

    it('is allowed of a disabled buffer, and leaves its count and the counters as they were', async () => {
      const batch = await here.writeDeadLetter()
      await here.node
        .db`UPDATE buffers SET enabled = false, consecutive_dlq_count = 3 WHERE buffer_id = ${here.bufferId}`
      await here.retry(batch.dlqId)
      expect(here.sink.requests('/first')).to.have.length(1)
      expect(await here.node.buffers.read(acme, here.bufferId)).to.include({
        enabled: false,
        consecutiveDlqCount: 3,
      })
      expect(await here.node.db`SELECT FROM delivery_days`).to.have.length(0)
    })
  })

  describe('that fails', () => {
    it('answers all of it, keeps the item and counts', async () => {
      const batch = await here.writeDeadLetter({ itemCount: 2 })
      expect(await here.read(batch.dlqId)).to.include({ retryCount: 0, lastRetryAt: null })
      for (const [count, status] of [
        [1, 503],
        [2, 410],
      ] as const) {
        here.sink.otherwise({ status, body: `no: ${status}` })
        const since = Date.now()
        const { durationMs, ...answer } = await refused(here.retry(batch.dlqId))
        expect(answer).to.deep.equal({
          status: 502,
          error: 'The destination did not accept the batch',
          code: 'delivery_failed',
          dlqId: batch.dlqId,
          itemCount: 2,
          statusCode: status,
          lastError: `the destination answered ${status}`,
          errorClass: status === 503 ? 'http_5xx' : 'http_4xx',
          retryCount: count,
        })
        expect(durationMs).to.be.a('number')
        const item = await here.read(batch.dlqId)
        expect(item).to.include({
          retryCount: count,
          lastStatusCode: status,
          payloadStored: true,
          lastError: `the destination answered ${status}`,
          lastResponse: `no: ${status}`,
          // Of the automatic attempts: a manual one is none of them.
          attempt: batch.attempt,
          reason: batch.reason,
        })
        expect(item.lastRetryAt).to.be.within(since - 1, Date.now() + 1)
      }
      expect(here.toldOf(batch.dlqId).map(({ delivered, error }) => [delivered, error])).to.deep.equal([
        [false, 'the destination answered 503'],
        [false, 'the destination answered 410'],
      ])
      expect(Buffer.compare(await here.queue().batch(acme, batch.dlqId), batch.body)).to.equal(0)
      const keys = here.sink.requests().map(({ headers }) => headers['x-idempotency-key'])
      expect(new Set(keys)).to.deep.equal(new Set([`grp:${batch.groupId}:v7`]))
      expect(await here.node.buffers.read(acme, here.bufferId)).to.include({ consecutiveDlqCount: 1 })
    })

    const classes: [string, SinkAnswer | string, number, string][] = [
      ['a redirect', { status: 302, headers: { location: '/elsewhere' } }, 302, 'http_other'],
      ['a reset', { fault: 'reset' }, 0, 'connection'],
      ['an answer that is no HTTP', { fault: 'garbage' }, 0, 'connection'],
      ['a name that does not exist', 'http://no-such-name.invalid/', 0, 'dns'],
      ['a private address', 'http://10.1.2.3/', 0, 'blocked_destination'],
      ['the metadata address', 'http://169.254.169.254/latest', 0, 'blocked_destination'],
    ]
    for (const [what, how, statusCode, errorClass] of classes) {
      it(`by ${what} is ${errorClass}`, async () => {
        const batch = await here.writeDeadLetter()
        if (typeof how === 'string')
          await here.node.buffers.update(acme, here.bufferId, { delivery: { url: how } })
        else here.sink.otherwise(how)
        const answer = await refused(here.retry(batch.dlqId))
        expect(answer).to.include({ status: 502, statusCode, errorClass, retryCount: 1 })
        expect(answer.lastError).to.be.a('string').with.length.above(3)
        const item = await here.read(batch.dlqId)
        expect(item).to.include({ lastStatusCode: statusCode, lastError: answer.lastError })
        // Of the attempt before it stays nothing.
        expect(item).not.to.have.property('lastResponse')
      })
    }

    it('by a handshake is tls', async () => {
      const batch = await here.writeDeadLetter()
      const url = here.sink.url().replace('http:', 'https:')
      await here.node.buffers.update(acme, here.bufferId, { delivery: { url } })
      expect(await refused(here.retry(batch.dlqId))).to.include({
        status: 502,
        statusCode: 0,
        errorClass: 'tls',
      })
    })

    it('by silence is timeout, after 10 s', async () => {
      const batch = await here.writeDeadLetter()
      const clock = new ManualClock()
      here.client = newClient({ clock })
      here.sink.otherwise({ fault: 'hang' })
      const answer = refused(here.retry(batch.dlqId))
      await here.sink.waitForCount(1)
      clock.advance(9_999)
      expect(await refused(here.retry(batch.dlqId))).to.include({ status: 409, code: 'retry_in_progress' })
      clock.advance(1)
      expect(await answer).to.include({
        status: 502,
        statusCode: 0,
        errorClass: 'timeout',
        durationMs: 10_000,
        lastError: 'no response within 10000 ms',
      })
    })

    it('because no name server answers says that nothing was sent', async () => {
      const batch = await here.writeDeadLetter()
      const url = here.sink.url('/', 'sink.test')
      await here.node.buffers.update(acme, here.bufferId, { delivery: { url } })
      here.client = newClient({
        resolve: () => Promise.reject(new LookupWithheldError('no name server answers')),
      })
      expect(await refused(here.retry(batch.dlqId))).to.include({
        status: 502,
        statusCode: 0,
        errorClass: 'dns',
        lastError: 'nothing was sent: no name server answers',
      })
    })

    it('because the destination takes no more connections says that nothing was sent', async () => {
      const batch = await here.writeDeadLetter()
      here.client = newClient({ limits: { atOnce: 1, waiting: 0 } })
      const held = here.holding()
      const blocking = here.client.send(
        (await here.node.buffers.read(acme, here.bufferId)).delivery,
        'k',
        batch.body,
      )
      await held.arrived(1)
      const answer = await refused(here.retry(batch.dlqId))
      expect(answer).to.include({ status: 502, statusCode: 0, errorClass: 'timeout', retryCount: 1 })
      expect(answer.lastError).to.match(/^nothing was sent/)
      held.answer({})
      await blocking
      expect(here.sink.requests()).to.have.length(1)
    })
  })

  describe('beside batches of its buffer that wait for a connection', () => {
    it('has a turn of its own, and is not the last', async () => {
      const batch = await here.writeDeadLetter()
      const { uid, buffer } = await here.node.buffers.record(acme, here.bufferId)
      here.client = newClient({ limits: { atOnce: 1, waiting: 100 } })
      const held = here.holding()
      const waiting = Array.from({ length: 10 }, (_, n) =>
        here.client.send(buffer.delivery, `waiting-${n}`, batch.body, { flow: uid }),
      )
      await held.arrived(1)
      const retried = here.retry(batch.dlqId)
      // Claimed: it is about to wait, too.
      await eventually(async () => {
        const [row] = await here.node.db`SELECT retry_until FROM dlq_items WHERE dlq_id = ${batch.dlqId}`
        return row!.retry_until !== null
      })
      for (let arrivals = 1; arrivals <= 11; arrivals++) {
        await held.arrived(arrivals)
        held.answer({})
      }
      expect(await retried).to.include({ success: true })
      await Promise.all(waiting)
      const keys = here.sink.requests().map(({ headers }) => headers['x-idempotency-key'])
      expect(keys.indexOf(`grp:${batch.groupId}:v7`)).to.be.within(1, 9)
    })

    it('gives up after 5 s, and tells that nothing was sent', async () => {
      const batch = await here.writeDeadLetter()
      const { uid, buffer } = await here.node.buffers.record(acme, here.bufferId)
      const clock = new ManualClock()
      here.client = newClient({ clock, limits: { atOnce: 1, waiting: 100 } })
      const held = here.holding()
      const blocking = here.client.send(buffer.delivery, 'k', batch.body, { flow: uid })
      await held.arrived(1)
      const pending = clock.pending
      const answer = refused(here.retry(batch.dlqId))
      await eventually(() => clock.pending > pending)
      clock.advance(WAIT_MS)
      expect(await answer).to.include({
        status: 502,
        errorClass: 'timeout',
        lastError: 'nothing was sent: no free connection to the destination within 5000 ms',
      })
      held.answer({})
      await blocking
      expect(here.sink.requests()).to.have.length(1)
    })
  })

  describe('that is refused', () => {
    afterEach(() => expect(here.sink.requests()).to.have.length(0))

    /** Nothing of the row changed, its lock included. */
    async function changesNothing(dlqId: string, work: () => Promise<unknown>): Promise<void> {
      const row = () => here.node.db`SELECT * FROM dlq_items WHERE dlq_id = ${dlqId}`
      const before = [...(await row())]
      await work()
      expect([...(await row())]).to.deep.equal(before)
    }

    it('is 404 for an unknown item and 403 for a foreign one or a foreign customerId', async () => {
      const { dlqId } = await here.writeDeadLetter()
      await changesNothing(dlqId, async () => {
        for (const unknown of ['unknown', 'a\u0000b', '']) {
          expect(await refused(here.retry(unknown))).to.deep.equal({
            status: 404,
            error: 'DLQ item not found',
          })
        }
        expect(await refused(here.retry(dlqId, principal('other')))).to.deep.equal({
          status: 403,
          error: 'DLQ item belongs to another customer',
        })
        for (const customerId of ['other', '']) {
          expect(await refused(here.retry(dlqId, acme, { customerId }))).to.deep.equal({
            status: 403,
            error: 'customerId differs from the authenticated customer',
          })
        }
        const scoped = principal('acme', { projectIds: ['q'] })
        expect((await refused(here.retry(dlqId, scoped))).status).to.equal(404)
      })
    })

    it('is 409 when the batch is not stored', async () => {
      const { dlqId } = await here.writeDeadLetter()
      await here.node.db`UPDATE dlq_items SET body = NULL WHERE dlq_id = ${dlqId}`
      await changesNothing(dlqId, async () => {
        expect(await refused(here.retry(dlqId))).to.include({ status: 409, code: 'payload_unavailable' })
      })
    })

    it('is 404 when the buffer was deleted, also when its id was taken again or its row is gone', async () => {
      const { dlqId } = await here.writeDeadLetter()
      const gone = { status: 404, error: 'Buffer not found' }
      const { uid } = await here.node.buffers.record(acme, here.bufferId)
      await here.node.buffers.remove(acme, here.bufferId)
      await changesNothing(dlqId, async () => {
        expect(await refused(here.retry(dlqId))).to.deep.equal(gone)
        await here.createBuffer()
        expect(await refused(here.retry(dlqId))).to.deep.equal(gone)
        await here.node.db`DELETE FROM buffers WHERE uid = ${uid}`
        expect(await refused(here.retry(dlqId))).to.deep.equal(gone)
      })
      expect(await here.read(dlqId)).to.include({ bufferId: here.bufferId, payloadStored: true })
    })
  })

  it('is made by a scoped key of its project, with the own customerId given', async () => {
    const { dlqId } = await here.writeDeadLetter()
    const scoped = principal('acme', { projectIds: ['p'] })
    expect(await here.retry(dlqId, scoped, { customerId: 'acme' })).to.include({ success: true })
  })
})
