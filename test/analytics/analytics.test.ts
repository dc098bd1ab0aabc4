/** Definitions of the figures, over a real Postgres with rows placed on days around a chosen moment. */
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { type Analytics, createAnalytics } from '../../internal/analytics/analytics.ts'
import type { Principal } from '../../internal/domain/principal.ts'
import { createAnalyticsStore } from '../../internal/postgres/analytics.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { principal } from '../support/accounts.ts'
import { insertDay } from '../support/day-rows.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

const FIRST_OF_MARCH = Date.UTC(2028, 2, 1)
const NO_DELTAS = { ingestDelta: 0, deliveryDelta: 0, successRateDelta: 0 }

describe('analytics', () => {
  let db: Database
  let now: number
  let analytics: Analytics
  let owner: Principal
  let buffer: TestBuffer

  before(async () => {
    db = connect(await freshDatabase())
    const clock = { ...systemClock(), now: () => now }
    analytics = createAnalytics({ store: createAnalyticsStore(db), clock })
  })

  after(() => db.end())

  beforeEach(async () => {
    now = FIRST_OF_MARCH + 43_200_000
    owner = principal(await insertCustomer(db))
    buffer = await insertBuffer(db, owner.customerId)
  })

  const series = (filter: { projectId?: string; bufferId?: string } = {}, days = 7, as = owner) =>
    analytics.timeseries(as, { days, ...filter })
  const ingested = async (filter: { projectId?: string; bufferId?: string } = {}, as = owner) =>
    (await series(filter, 7, as)).totals.ingestCount

  describe('summary', () => {
    it('of an account in which nothing happened is all zeros', async () => {
      expect(await analytics.summary(owner)).to.deep.equal({
        today: {
          ingestCount: 0,
          deliveryCount: 0,
          deliverySuccess: 0,
          deliveryFail: 0,
          dlqCount: 0,
          avgBatchSize: 0,
          compressionRatio: 0,
        },
        trend: NO_DELTAS,
        counts: { projects: 1, buffers: 1 },
      })
    })

    it('tells of today, and the change from yesterday', async () => {
      const other = await insertBuffer(db, owner.customerId)
      await insertDay(db, buffer, '2028-03-01', { ingested: 40, delivered: 5, dead: 1, itemsDelivered: 33 })
      await insertDay(db, other, '2028-03-01', { ingested: 20, delivered: 3, dead: 1, itemsDelivered: 3 })
      await db`UPDATE delivery_days SET items_dead = 4 WHERE buffer_uid = ${other.uid}`
      await insertDay(db, buffer, '2028-02-29', { ingested: 80, delivered: 4, dead: 4, itemsDelivered: 9 })
      expect(await analytics.summary(owner)).to.deep.equal({
        today: {
          ingestCount: 60,
          deliveryCount: 10,
          deliverySuccess: 8,
          deliveryFail: 2,
          dlqCount: 2,
          avgBatchSize: (33 + 3 + 4) / 10,
          compressionRatio: 36 / 8,
        },
        trend: { ingestDelta: -25, deliveryDelta: 25, successRateDelta: 80 - 50 },
        counts: { projects: 2, buffers: 2 },
      })
    })

    it('puts the change at 100 when only yesterday is 0, and at -100 when only today is', async () => {
      await insertDay(db, buffer, '2028-03-01', { ingested: 7, delivered: 3 })
      expect((await analytics.summary(owner)).trend).to.deep.equal({
        ingestDelta: 100,
        deliveryDelta: 100,
        successRateDelta: 100,
      })
      now += 86_400_000
      expect((await analytics.summary(owner)).trend).to.deep.equal({
        ingestDelta: -100,
        deliveryDelta: -100,
        successRateDelta: -100,
      })
      now += 86_400_000
      expect((await analytics.summary(owner)).trend).to.deep.equal(NO_DELTAS)
    })

    it('turns the day at UTC midnight, to the millisecond', async () => {
      await insertDay(db, buffer, '2028-02-28', { ingested: 1 })
      await insertDay(db, buffer, '2028-02-29', { ingested: 2 })
      await insertDay(db, buffer, '2028-03-01', { ingested: 8 })
      now = FIRST_OF_MARCH - 1
      const before = await analytics.summary(owner)
      expect([before.today.ingestCount, before.trend.ingestDelta]).to.deep.equal([2, 100])
      now = FIRST_OF_MARCH
      const after = await analytics.summary(owner)
      expect([after.today.ingestCount, after.trend.ingestDelta]).to.deep.equal([8, 300])
    })
  })

  describe('timeseries', () => {
    it('has every day up to today, oldest first, also over the end of a month', async () => {
      await insertDay(db, buffer, '2028-02-29', {
        ingested: 9,
        delivered: 2,
        dead: 1,
        retries: 4,
        itemsDelivered: 6,
      })
      const { timeseries } = await series({}, 3)
      const nothing = { ingestCount: 0, deliveryCount: 0, deliverySuccess: 0, deliveryFail: 0 }
      expect(timeseries).to.deep.equal([
        { date: '2028-02-28', ...nothing, retryCount: 0, itemsDelivered: 0 },
        {
          date: '2028-02-29',
          ingestCount: 9,
          deliveryCount: 3,
          deliverySuccess: 2,
          deliveryFail: 1,
          retryCount: 4,
          itemsDelivered: 6,
        },
        { date: '2028-03-01', ...nothing, retryCount: 0, itemsDelivered: 0 },
      ])
    })

    it('reaches as far back as asked, and not a day further', async () => {
      for (const day of ['2027-12-03', '2027-12-02', '2028-03-02']) {
        await insertDay(db, buffer, day, { ingested: 1, delivered: 1 })
      }
      const { timeseries, totals } = await series({}, 90)
      expect(timeseries).to.have.length(90)
      expect(timeseries[0]).to.include({ date: '2027-12-03', ingestCount: 1 })
      expect([totals.ingestCount, totals.deliveryCount]).to.deep.equal([1, 1])
      const alone = await series({}, 1)
      expect(alone.timeseries.map(({ date }) => date)).to.deep.equal(['2028-03-01'])
    })

    it('sums up its days, with ratios of the sums', async () => {
      await insertDay(db, buffer, '2028-02-25', { ingested: 5, delivered: 1, itemsDelivered: 5, retries: 1 })
      await insertDay(db, buffer, '2028-03-01', {
        ingested: 10,
        delivered: 2,
        dead: 1,
        itemsDelivered: 4,
        itemsDead: 6,
        retries: 2,
      })
      expect((await series()).totals).to.deep.equal({
        ingestCount: 15,
        deliveryCount: 4,
        deliverySuccess: 3,
        deliveryFail: 1,
        dlqCount: 1,
        retryCount: 3,
        itemsDelivered: 9,
        compressionRatio: 3,
        successRate: 75,
      })
    })

    it('has every bucket of the histograms, each batch in one of them', async () => {
      await insertDay(db, buffer, '2028-02-25', { timeToFlush: { 0: 2, 11: 1 }, deliveryDuration: { 10: 4 } })
      await insertDay(db, buffer, '2028-02-26', { timeToFlush: { 0: 1, 3: 7 }, deliveryDuration: { 0: 9 } })
      expect((await series()).histograms).to.deep.equal({
        timeToFlush: {
          '100': 3,
          '250': 0,
          '500': 0,
          '1000': 7,
          '2500': 0,
          '5000': 0,
          '10000': 0,
          '15000': 0,
          '30000': 0,
          '60000': 0,
          '300000': 0,
          '+Inf': 1,
        },
        deliveryDuration: {
          '10': 9,
          '25': 0,
          '50': 0,
          '100': 0,
          '250': 0,
          '500': 0,
          '1000': 0,
          '2500': 0,
          '5000': 0,
          '10000': 0,
          '+Inf': 4,
        },
      })
    })

    it('of an account in which nothing happened has its buckets too, and no ratio of nothing', async () => {
      const { histograms, totals } = await series()
      expect(Object.keys(histograms.timeToFlush)).to.have.length(12)
      expect(Object.keys(histograms.deliveryDuration)).to.have.length(11)
      expect([totals.compressionRatio, totals.successRate]).to.deep.equal([0, 0])
    })
  })

  describe('whose figures', () => {
    let other: TestBuffer

    beforeEach(async () => {
      other = await insertBuffer(db, owner.customerId)
      await insertDay(db, buffer, '2028-03-01', { ingested: 1, delivered: 1 })
      await insertDay(db, other, '2028-03-01', { ingested: 10, delivered: 1 })
    })

    it('a filter narrows them, two do both', async () => {
      expect(await ingested()).to.equal(11)
      expect(await ingested({ projectId: buffer.projectId })).to.equal(1)
      expect(await ingested({ bufferId: other.bufferId })).to.equal(10)
      expect(await ingested({ projectId: other.projectId, bufferId: other.bufferId })).to.equal(10)
      expect(await ingested({ projectId: buffer.projectId, bufferId: other.bufferId })).to.equal(0)
    })

    it('an unknown filter and one that names what is another customer’s look the same', async () => {
      const rival = principal(await insertCustomer(db))
      expect(await ingested({ projectId: 'nobody' })).to.equal(0)
      expect(await ingested({ projectId: buffer.projectId }, rival)).to.equal(0)
      expect(await series({ bufferId: buffer.bufferId }, 7, rival)).to.deep.equal(
        await series({ bufferId: 'nothing' }, 7, rival),
      )
      expect((await analytics.summary(rival)).today.ingestCount).to.equal(0)
    })

    it('a project-scoped credential gets its projects alone', async () => {
      const scoped = principal(owner.customerId, { projectIds: [other.projectId, 'gone'] })
      expect(await ingested({}, scoped)).to.equal(10)
      expect(await ingested({ projectId: other.projectId }, scoped)).to.equal(10)
      expect(await ingested({ projectId: buffer.projectId }, scoped)).to.equal(0)
      expect(await ingested({ bufferId: buffer.bufferId }, scoped)).to.equal(0)
      const { today, counts } = await analytics.summary(scoped)
      expect(today).to.include({ ingestCount: 10, deliveryCount: 1 })
      expect(counts).to.deep.equal({ projects: 1, buffers: 1 })
    })

    it('a deleted buffer keeps its past, also when nothing else is left of it', async () => {
      await db`UPDATE buffers SET deleted_at = now(), deleted_state = 'enabled' WHERE uid = ${other.uid}`
      await db`DELETE FROM projects WHERE project_id = ${other.projectId}`
      const { today, counts } = await analytics.summary(owner)
      expect(today.ingestCount).to.equal(11)
      expect(counts).to.deep.equal({ projects: 1, buffers: 1 })
      await db`DELETE FROM buffers WHERE uid = ${other.uid}`
      const scoped = principal(owner.customerId, { projectIds: [other.projectId] })
      expect(await ingested()).to.equal(11)
      expect(await ingested({}, scoped)).to.equal(10)
      expect(await ingested({ projectId: other.projectId })).to.equal(10)
      expect(await ingested({ bufferId: other.bufferId })).to.equal(10)
    })

    it('an id that was taken again stands for both of its buffers, within its customer', async () => {
      await db`UPDATE buffers SET deleted_at = now(), deleted_state = 'enabled' WHERE uid = ${other.uid}`
      const rival = principal(await insertCustomer(db))
      for (const { customerId } of [owner, rival]) {
        await db`UPDATE buffers SET deleted_at = now(), deleted_state = 'enabled'
          WHERE buffer_id = ${other.bufferId} AND deleted_at IS NULL`
        // As before ids belonged to their customer for ever.
        await db`DELETE FROM taken_ids WHERE id = ${other.bufferId}`
        const next = await takeAgain(db, other, customerId)
        await insertDay(db, next, '2028-03-01', { ingested: 100 })
      }
      expect(await ingested({ bufferId: other.bufferId })).to.equal(110)
      expect(await ingested({ bufferId: other.bufferId }, rival)).to.equal(100)
    })
  })
})

async function takeAgain(db: Database, buffer: TestBuffer, customerId: string): Promise<TestBuffer> {
  const [row] = await db<{ uid: string }[]>`
    INSERT INTO buffers (uid, buffer_id, customer_id, project_id, config)
    VALUES (gen_random_uuid(), ${buffer.bufferId}, ${customerId}, ${buffer.projectId}, '{}') RETURNING uid`
  return { ...buffer, customerId, uid: row!.uid }
}
