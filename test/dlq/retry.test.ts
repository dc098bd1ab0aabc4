/** Manual retries on a real Postgres, over a real client, to a real destination. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import type { DeliveryClient } from '../../internal/delivery/client.ts'
import { createDeadLetterQueue } from '../../internal/dlq/dead-letters.ts'
import type { RetryStore } from '../../internal/dlq/ports.ts'
import { createDeadLetterRetry, type RetryReport } from '../../internal/dlq/retry.ts'
import { ServiceError } from '../../internal/domain/errors.ts'
import type { DlqItem } from '../../internal/domain/model.ts'
import type { Principal } from '../../internal/domain/principal.ts'
import { sign } from '../../internal/domain/signature.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { createDeadLetterStore } from '../../internal/postgres/dlq-items.ts'
import { createRetryStore } from '../../internal/postgres/dlq-retries.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import type { DeadBatch } from '../../internal/shard/ports.ts'
import { newClient } from '../delivery/fixture.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { type AccountsNode, accountsNode, bufferBody, principal } from '../support/accounts.ts'
import { deadBatch } from '../support/dead-batch.ts'
import { eventually } from '../support/eventually.ts'
import { type Sink, type SinkAnswer, startSink } from '../support/sink.ts'

describe('dlq: manual retry', () => {
  const acme = principal('acme')
  let node: AccountsNode
  let sink: Sink
  let client: DeliveryClient
  let bufferId: string

  before(async () => {
    node = await accountsNode()
    for (const customerId of ['acme', 'other']) await node.customers.ensure(customerId)
    for (const projectId of ['p', 'q']) await node.projects.create(acme, { projectId, name: projectId })
  })
  after(() => node.close())
  beforeEach(async () => {
    sink = await startSink()
    client = newClient()
    bufferId = `buffer-${randomUUID()}`
    await node.buffers.create(acme, bufferBody(bufferId, 'p', { delivery: { url: sink.url('/first') } }))
  })
  afterEach(async () => {
    await client.close(0)
    await sink.close()
  })

  async function bury(given: Partial<DeadBatch> = {}): Promise<DeadBatch> {
    const { uid, buffer } = await node.buffers.record(acme, bufferId)
    const batch = deadBatch({ uid, ...buffer }, given)
    await createDeadLetters(node.db).bury({ shard: 1, epoch: 1 }, batch)
    return batch
  }

  const queue = () => createDeadLetterQueue({ store: createDeadLetterStore(node.db) })
  const locks = (): RetryStore => createRetryStore(node.db, node.box)

  function retrying({ clock = node.clock, retries = locks() }: { clock?: Clock; retries?: RetryStore } = {}) {
    return createDeadLetterRetry({
      ...{ store: createDeadLetterStore(node.db), retries, deliveries: client, clock },
    })
  }

  function retry(
    dlqId: string,
    who: Principal = acme,
    body: { customerId?: string } = {},
  ): Promise<RetryReport> {
    return retrying().retry(who, dlqId, body)
  }

  /** Status and body of the refusal that a retry ends with. */
  async function refused(work: Promise<unknown>): Promise<Record<string, unknown> & { status: number }> {
    const error = await work.then(
      () => new Error('it was not refused'),
      (reason: unknown) => reason,
    )
    if (!(error instanceof ServiceError)) throw error
    return { status: error.status, ...error.body }
  }

  const read = (dlqId: string): Promise<DlqItem> => queue().read(acme, dlqId)

  /** Answers are given when they are asked for, one a request. */
  function holding(): { arrived(count: number): Promise<unknown>; answer(answer: SinkAnswer): void } {
    const held: ((answer: SinkAnswer) => void)[] = []
    let arrivals = 0
    sink.otherwise(() => {
      arrivals++
      return new Promise((resolve) => held.push(resolve))
    })
    return {
      arrived: (count) => eventually(() => arrivals >= count),
      answer: (answer) => held.shift()!(answer),
    }
  }

  const expireLock = (dlqId: string) => node.db`
    UPDATE dlq_items SET retry_until = clock_timestamp() - interval '1 ms' WHERE dlq_id = ${dlqId}`

  describe('that the destination accepts', () => {
    it('sends the very bytes under their own key to the present configuration, and removes the item', async () => {
      const body = Buffer.from('{"items":[{"payload":{"n":1.50,"n":2, "z":"\u00e9"}}]}')
      const batch = await bury({ body, itemCount: 3, version: 42 })
      await node.buffers.update(acme, bufferId, {
        delivery: {
          url: sink.url('/second?x=1'),
          method: 'PUT',
          headers: { 'x-tenant': 'blue' },
          idempotencyHeader: 'x-once',
          signing: { type: 'hmac-sha256', secret: 'old', header: 'x-sig' },
        },
      })
      await node.buffers.update(acme, bufferId, { delivery: { signing: { secret: 'current' } } })
      sink.otherwise({ status: 202, body: 'thanks' })
      const report = await retry(batch.dlqId)
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
      const [request, ...more] = sink.requests()
      expect(more).to.deep.equal([])
      expect([request!.method, request!.path]).to.deep.equal(['PUT', '/second?x=1'])
      expect(Buffer.compare(request!.body, body)).to.equal(0)
      expect(request!.headers).to.include({
        'x-once': `grp:${batch.groupId}:v42`,
        'x-tenant': 'blue',
        'x-sig': sign('current', body),
      })
      expect(await refused(read(batch.dlqId))).to.deep.equal({ status: 404, error: 'DLQ item not found' })
      expect((await refused(retry(batch.dlqId))).status).to.equal(404)
      expect(await node.db`SELECT FROM dlq_items WHERE dlq_id = ${batch.dlqId}`).to.have.length(0)
    })

    it('leaves a tombstone only while the journal may not have recorded the death', async () => {
      for (const [recorded, tombstones] of [
        [false, 1],
        [true, 0],
      ] as const) {
        const batch = await bury()
        const name = { groupId: batch.groupId, version: batch.version }
        if (recorded) await createDeadLetters(node.db).forgetTombstones({ shard: 1, epoch: 1 }, [name])
        await retry(batch.dlqId)
        const left = await node.db`SELECT FROM dlq_tombstones WHERE group_id = ${batch.groupId}`
        expect(left).to.have.length(tombstones)
      }
    })

    it('is allowed of a disabled buffer, and leaves its count and the counters as they were', async () => {
      const batch = await bury()
      await node.db`UPDATE buffers SET enabled = false, consecutive_dlq_count = 3 WHERE buffer_id = ${bufferId}`
      await retry(batch.dlqId)
      expect(sink.requests('/first')).to.have.length(1)
      expect(await node.buffers.read(acme, bufferId)).to.include({ enabled: false, consecutiveDlqCount: 3 })
      expect(await node.db`SELECT FROM delivery_days`).to.have.length(0)
    })
  })

  describe('that fails', () => {
    it('answers all of it, keeps the item and counts', async () => {
      const batch = await bury({ itemCount: 2 })
      expect(await read(batch.dlqId)).to.include({ retryCount: 0, lastRetryAt: null })
      for (const [count, status] of [
        [1, 503],
        [2, 410],
      ] as const) {
        sink.otherwise({ status })
        const since = Date.now()
        const { durationMs, ...answer } = await refused(retry(batch.dlqId))
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
        const item = await read(batch.dlqId)
        expect(item).to.include({
          ...{ retryCount: count, lastStatusCode: status, payloadStored: true },
          lastError: `the destination answered ${status}`,
          // Of the automatic attempts: a manual one is none of them.
          attempt: batch.attempt,
          reason: batch.reason,
        })
        expect(item.lastRetryAt).to.be.within(since - 1, Date.now() + 1)
      }
      expect(Buffer.compare(await queue().batch(acme, batch.dlqId), batch.body)).to.equal(0)
      const keys = sink.requests().map(({ headers }) => headers['x-idempotency-key'])
      expect(new Set(keys)).to.deep.equal(new Set([`grp:${batch.groupId}:v7`]))
      expect(await node.buffers.read(acme, bufferId)).to.include({ consecutiveDlqCount: 1 })
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
        const batch = await bury()
        if (typeof how === 'string') await node.buffers.update(acme, bufferId, { delivery: { url: how } })
        else sink.otherwise(how)
        const answer = await refused(retry(batch.dlqId))
        expect(answer).to.include({ status: 502, statusCode, errorClass, retryCount: 1 })
        expect(answer.lastError).to.be.a('string').with.length.above(3)
        expect(await read(batch.dlqId)).to.include({
          lastStatusCode: statusCode,
          lastError: answer.lastError,
        })
      })
    }

    it('by a handshake is tls', async () => {
      const batch = await bury()
      const url = sink.url().replace('http:', 'https:')
      await node.buffers.update(acme, bufferId, { delivery: { url } })
      expect(await refused(retry(batch.dlqId))).to.include({ status: 502, statusCode: 0, errorClass: 'tls' })
    })

    it('by silence is timeout, after 10 s', async () => {
      const batch = await bury()
      const clock = new ManualClock()
      client = newClient({ clock })
      sink.otherwise({ fault: 'hang' })
      const answer = refused(retry(batch.dlqId))
      await sink.waitForCount(1)
      clock.advance(9_999)
      expect(await refused(retry(batch.dlqId))).to.include({ status: 409, code: 'retry_in_progress' })
      clock.advance(1)
      expect(await answer).to.include({
        ...{ status: 502, statusCode: 0, errorClass: 'timeout', durationMs: 10_000 },
        lastError: 'no response within 10000 ms',
      })
    })

    it('because the destination takes no more connections says that nothing was sent', async () => {
      const batch = await bury()
      client = newClient({ limits: { connections: 1, waiting: 0 } })
      const held = holding()
      const blocking = client.send((await node.buffers.read(acme, bufferId)).delivery, 'k', batch.body)
      await held.arrived(1)
      const answer = await refused(retry(batch.dlqId))
      expect(answer).to.include({ status: 502, statusCode: 0, errorClass: 'timeout', retryCount: 1 })
      expect(answer.lastError).to.match(/^nothing was sent/)
      held.answer({})
      await blocking
      expect(sink.requests()).to.have.length(1)
    })
  })

  describe('beside another of the same item', () => {
    it('is 409: of 100 at once one attempt is made', async () => {
      const batch = await bury()
      const held = holding()
      const outcomes: (RetryReport | Record<string, unknown>)[] = []
      const all = Array.from({ length: 100 }, async () => {
        const one = retry(batch.dlqId)
        outcomes.push(
          await one.catch((error: ServiceError) => ({ status: error.status, code: error.body.code })),
        )
      })
      await held.arrived(1)
      await eventually(() => outcomes.length === 99)
      for (const outcome of outcomes)
        expect(outcome).to.deep.equal({ status: 409, code: 'retry_in_progress' })
      held.answer({})
      await Promise.all(all)
      expect(outcomes.at(-1)).to.include({ success: true })
      expect(sink.requests()).to.have.length(1)
    })

    it('of another item of the same buffer is free', async () => {
      const [one, two] = [await bury(), await bury()]
      const held = holding()
      const both = [retry(one.dlqId), retry(two.dlqId)]
      await held.arrived(2)
      for (const _ of both) held.answer({})
      for (const report of await Promise.all(both)) expect(report.success).to.equal(true)
    })

    it('takes over what a node left behind when it died, once the lock has run out', async () => {
      const batch = await bury()
      expect(await locks().claim(batch.dlqId, 30_000)).to.have.property('retryId')
      expect(await refused(retry(batch.dlqId))).to.deep.equal({
        status: 409,
        error: 'Another retry of this DLQ item is in progress',
        code: 'retry_in_progress',
      })
      expect(sink.requests()).to.have.length(0)
      await expireLock(batch.dlqId)
      sink.otherwise({ status: 500 })
      expect(await refused(retry(batch.dlqId))).to.include({ status: 502, retryCount: 1 })
      sink.otherwise({})
      expect(await retry(batch.dlqId)).to.include({ success: true })
      const keys = sink.requests().map(({ headers }) => headers['x-idempotency-key'])
      expect(keys).to.deep.equal([`grp:${batch.groupId}:v7`, `grp:${batch.groupId}:v7`])
    })

    it('whose lock ran out overwrites nothing of the one that took it over', async () => {
      const batch = await bury()
      const held = holding()
      const late = refused(retry(batch.dlqId))
      await held.arrived(1)
      await expireLock(batch.dlqId)
      const next = refused(retry(batch.dlqId))
      await held.arrived(2)
      held.answer({ status: 500 })
      expect(await late).to.include({ status: 502, statusCode: 500, retryCount: 1 })
      // The late one gave back a lock that was no longer its own.
      expect(await refused(retry(batch.dlqId))).to.include({ status: 409 })
      expect(await read(batch.dlqId)).to.include({ retryCount: 1, lastRetryAt: null, lastStatusCode: 500 })
      expect((await read(batch.dlqId)).lastError).to.equal(batch.lastError)
      held.answer({ status: 404 })
      expect(await next).to.include({ status: 502, statusCode: 404, retryCount: 2 })
      expect(await read(batch.dlqId)).to.include({ retryCount: 2, lastStatusCode: 404 })
    })

    it('that is accepted late removes the item all the same', async () => {
      const batch = await bury()
      const held = holding()
      const late = retry(batch.dlqId)
      await held.arrived(1)
      await expireLock(batch.dlqId)
      const next = refused(retry(batch.dlqId))
      await held.arrived(2)
      held.answer({})
      expect(await late).to.include({ success: true })
      held.answer({ status: 500 })
      expect(await next).to.include({ status: 502, retryCount: 1 })
      expect((await refused(read(batch.dlqId))).status).to.equal(404)
    })

    it('is not begun when it could outlive its lock', async () => {
      const batch = await bury()
      const clock = new ManualClock()
      const retries = locks()
      const slow: RetryStore = {
        ...retries,
        async claim(dlqId, leaseMs) {
          const claim = await retries.claim(dlqId, leaseMs)
          clock.advance(leaseMs - 10_000)
          return claim
        },
      }
      const answer = await refused(retrying({ clock, retries: slow }).retry(acme, batch.dlqId, {}))
      expect(answer).to.include({ status: 502, lastError: 'nothing was sent: withdrawn' })
      expect(sink.requests()).to.have.length(0)
    })
  })

  describe('beside the removal of its item', () => {
    for (const [what, answer, expected] of [
      ['accepted', {}, { success: true, statusCode: 200 }],
      ['refused', { status: 500 }, { status: 502, statusCode: 500, retryCount: 1 }],
    ] as const) {
      it(`tells what happened when it is ${what} afterwards, and brings nothing back`, async () => {
        const batch = await bury()
        const held = holding()
        const running = retry(batch.dlqId).catch((error: ServiceError) => ({ status: 502, ...error.body }))
        await held.arrived(1)
        await queue().remove(acme, batch.dlqId)
        held.answer(answer)
        expect(await running).to.include(expected)
        expect((await refused(read(batch.dlqId))).status).to.equal(404)
      })
    }

    it('is 404 when the removal comes first', async () => {
      const batch = await bury()
      const { promise: gate, resolve: finish } = Promise.withResolvers<void>()
      const { promise: deleted, resolve: haveDeleted } = Promise.withResolvers<void>()
      const removing = node.db.begin(async (transaction) => {
        await transaction`DELETE FROM dlq_items WHERE dlq_id = ${batch.dlqId}`
        haveDeleted()
        await gate
      })
      await deleted
      const late = refused(retry(batch.dlqId))
      await eventually(async () => {
        const waiting = await node.db`SELECT FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`
        return waiting.length > 0
      })
      finish()
      await removing
      expect(await late).to.deep.equal({ status: 404, error: 'DLQ item not found' })
      expect(sink.requests()).to.have.length(0)
    })
  })

  describe('that is refused', () => {
    afterEach(() => expect(sink.requests()).to.have.length(0))

    /** Nothing of the row changed, its lock included. */
    async function changesNothing(dlqId: string, work: () => Promise<unknown>): Promise<void> {
      const row = () => node.db`SELECT * FROM dlq_items WHERE dlq_id = ${dlqId}`
      const before = [...(await row())]
      await work()
      expect([...(await row())]).to.deep.equal(before)
    }

    it('is 404 for an unknown item and 403 for a foreign one or a foreign customerId', async () => {
      const { dlqId } = await bury()
      await changesNothing(dlqId, async () => {
        for (const unknown of ['unknown', 'a\u0000b', '']) {
          expect(await refused(retry(unknown))).to.deep.equal({ status: 404, error: 'DLQ item not found' })
        }
        expect(await refused(retry(dlqId, principal('other')))).to.deep.equal({
          status: 403,
          error: 'DLQ item belongs to another customer',
        })
        for (const customerId of ['other', '']) {
          expect(await refused(retry(dlqId, acme, { customerId }))).to.deep.equal({
            status: 403,
            error: 'customerId differs from the authenticated customer',
          })
        }
        const scoped = principal('acme', { projectIds: ['q'] })
        expect((await refused(retry(dlqId, scoped))).status).to.equal(404)
      })
    })

    it('is 409 when the batch is not stored', async () => {
      const { dlqId } = await bury()
      await node.db`UPDATE dlq_items SET body = NULL WHERE dlq_id = ${dlqId}`
      await changesNothing(dlqId, async () => {
        expect(await refused(retry(dlqId))).to.include({ status: 409, code: 'payload_unavailable' })
      })
    })

    it('is 404 when the buffer was deleted, also when its id was taken again or its row is gone', async () => {
      const { dlqId } = await bury()
      const gone = { status: 404, error: 'Buffer not found' }
      const { uid } = await node.buffers.record(acme, bufferId)
      await node.buffers.remove(acme, bufferId)
      await changesNothing(dlqId, async () => {
        expect(await refused(retry(dlqId))).to.deep.equal(gone)
        await node.buffers.create(acme, bufferBody(bufferId, 'p', { delivery: { url: sink.url('/first') } }))
        expect(await refused(retry(dlqId))).to.deep.equal(gone)
        await node.db`DELETE FROM buffers WHERE uid = ${uid}`
        expect(await refused(retry(dlqId))).to.deep.equal(gone)
      })
      expect(await read(dlqId)).to.include({ bufferId, payloadStored: true })
    })
  })

  it('is made by a scoped key of its project, with the own customerId given', async () => {
    const { dlqId } = await bury()
    const scoped = principal('acme', { projectIds: ['p'] })
    expect(await retry(dlqId, scoped, { customerId: 'acme' })).to.include({ success: true })
  })
})
