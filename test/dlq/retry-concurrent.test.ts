/** Manual retries beside others, and beside the removal of their item. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { RetryStore } from '../../internal/dlq/ports.ts'
import type { RetryReport } from '../../internal/dlq/retry.ts'
import type { ServiceError } from '../../internal/domain/errors.ts'
import { createDeadLetterStore } from '../../internal/postgres/dlq-items.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { eventually } from '../support/eventually.ts'
import { acme, refused, retriesOfEachTest } from './retries.ts'

describe('dlq: a manual retry', () => {
  const here = retriesOfEachTest()

  describe('beside another of the same item', () => {
    it('is 409: of 100 at once one attempt is made', async () => {
      const batch = await here.writeDeadLetter()
      const held = here.holding()
      const outcomes: (RetryReport | Record<string, unknown>)[] = []
      const all = Array.from({ length: 100 }, async () => {
        const one = here.retry(batch.dlqId)
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
      expect(here.sink.requests()).to.have.length(1)
    })

    it('of another item of the same buffer is free', async () => {
      const [one, two] = [await here.writeDeadLetter(), await here.writeDeadLetter()]
      const held = here.holding()
      const both = [here.retry(one.dlqId), here.retry(two.dlqId)]
      await held.arrived(2)
      for (const _ of both) held.answer({})
      for (const report of await Promise.all(both)) expect(report.success).to.equal(true)
    })

    it('takes over what a node left behind when it died, once the lock has run out', async () => {
      const batch = await here.writeDeadLetter()
      expect(await here.locks().claim(batch.dlqId, 30_000)).to.have.property('retryId')
      expect(await refused(here.retry(batch.dlqId))).to.deep.equal({
        status: 409,
        error: 'Another retry of this DLQ item is in progress',
        code: 'retry_in_progress',
      })
      expect(here.sink.requests()).to.have.length(0)
      await here.expireLock(batch.dlqId)
      here.sink.otherwise({ status: 500 })
      expect(await refused(here.retry(batch.dlqId))).to.include({ status: 502, retryCount: 1 })
      here.sink.otherwise({})
      expect(await here.retry(batch.dlqId)).to.include({ success: true })
      const keys = here.sink.requests().map(({ headers }) => headers['x-idempotency-key'])
      expect(keys).to.deep.equal([`grp:${batch.groupId}:v7`, `grp:${batch.groupId}:v7`])
    })

    it('whose lock ran out overwrites nothing of the one that took it over', async () => {
      const batch = await here.writeDeadLetter()
      const held = here.holding()
      const late = refused(here.retry(batch.dlqId))
      await held.arrived(1)
      await here.expireLock(batch.dlqId)
      const next = refused(here.retry(batch.dlqId))
      await held.arrived(2)
      held.answer({ status: 500 })
      expect(await late).to.include({ status: 502, statusCode: 500, retryCount: 1 })
      // The late one gave back a lock that was no longer its own.
      expect(await refused(here.retry(batch.dlqId))).to.include({ status: 409 })
      expect(await here.read(batch.dlqId)).to.include({
        retryCount: 1,
        lastRetryAt: null,
        lastStatusCode: 500,
      })
      expect((await here.read(batch.dlqId)).lastError).to.equal(batch.lastError)
      held.answer({ status: 404 })
      expect(await next).to.include({ status: 502, statusCode: 404, retryCount: 2 })
      expect(await here.read(batch.dlqId)).to.include({ retryCount: 2, lastStatusCode: 404 })
    })

    it('that is accepted late removes the item all the same', async () => {
      const batch = await here.writeDeadLetter()
      const held = here.holding()
      const late = here.retry(batch.dlqId)
      await held.arrived(1)
      await here.expireLock(batch.dlqId)
      const next = refused(here.retry(batch.dlqId))
      await held.arrived(2)
      held.answer({})
      expect(await late).to.include({ success: true })
      held.answer({ status: 500 })
      expect(await next).to.include({ status: 502, retryCount: 1 })
      expect((await refused(here.read(batch.dlqId))).status).to.equal(404)
    })

    it('takes its lock once it has read the batch, however long that takes', async () => {
      const body = Buffer.from(JSON.stringify({ items: [{ payload: 'x'.repeat(1_000_000) }] }))
      const batch = await here.writeDeadLetter({ body })
      const gate = Promise.withResolvers<void>()
      const store = createDeadLetterStore(here.node.db)
      const slow = {
        ...store,
        async body(dlqId: string) {
          await gate.promise
          return store.body(dlqId)
        },
      }
      const late = here.retry(batch.dlqId, acme, {}, { store: slow })
      here.sink.otherwise({ status: 500 })
      expect(await refused(here.retry(batch.dlqId))).to.include({ status: 502, retryCount: 1 })
      here.sink.otherwise({})
      gate.resolve()
      expect(await late).to.include({ success: true })
      for (const request of here.sink.requests()) expect(Buffer.compare(request.body, body)).to.equal(0)
    })

    for (const [what, pass] of [
      ['the claim took long', (clock: ManualClock, ms: number) => clock.advance(ms)],
      ['the machine was suspended', (clock: ManualClock, ms: number) => clock.suspend(ms)],
    ] as const) {
      it(`is not begun when it could outlive its lock, because ${what}`, async () => {
        const batch = await here.writeDeadLetter()
        const clock = new ManualClock()
        const retries = here.locks()
        const slow: RetryStore = {
          ...retries,
          async claim(dlqId, leaseMs) {
            const claim = await retries.claim(dlqId, leaseMs)
            pass(clock, leaseMs - 10_000)
            return claim
          },
        }
        const answer = await refused(here.retry(batch.dlqId, acme, {}, { clock, retries: slow }))
        expect(answer).to.include({ status: 502, lastError: 'nothing was sent: withdrawn' })
        expect(here.sink.requests()).to.have.length(0)
      })
    }
  })

  describe('beside the removal of its item', () => {
    for (const [what, answer, expected] of [
      ['accepted', {}, { success: true, statusCode: 200 }],
      ['refused', { status: 500 }, { status: 502, statusCode: 500, retryCount: 1 }],
    ] as const) {
      it(`tells what happened when it is ${what} afterwards, and brings nothing back`, async () => {
        const batch = await here.writeDeadLetter()
        const held = here.holding()
        const running = here
          .retry(batch.dlqId)
          .catch((error: ServiceError) => ({ status: 502, ...error.body }))
        await held.arrived(1)
        await here.queue().remove(acme, batch.dlqId)
        held.answer(answer)
        expect(await running).to.include(expected)
        expect((await refused(here.read(batch.dlqId))).status).to.equal(404)
      })
    }

    it('is 404 when the removal comes first', async () => {
      const batch = await here.writeDeadLetter()
      const { promise: gate, resolve: finish } = Promise.withResolvers<void>()
      const { promise: deleted, resolve: haveDeleted } = Promise.withResolvers<void>()
      const removing = here.node.db.begin(async (transaction) => {
        await transaction`DELETE FROM dlq_items WHERE dlq_id = ${batch.dlqId}`
        haveDeleted()
        await gate
      })
      await deleted
      const late = refused(here.retry(batch.dlqId))
      await eventually(async () => {
        const waiting = await here.node.db`SELECT FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`
        return waiting.length > 0
      })
      finish()
      await removing
      expect(await late).to.deep.equal({ status: 404, error: 'DLQ item not found' })
      expect(here.sink.requests()).to.have.length(0)
    })
  })
})
