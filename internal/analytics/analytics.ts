/**
 * Figures of a customer's traffic (docs/reference/analytics.md). Days are UTC's, today's
 * figures go on growing. A project-scoped principal gets the figures of its projects alone.
 */

import { deliveryDurationBounds, histogramOf, timeToFlushBounds } from '../domain/histogram.ts'
import { type Principal, scopeOf } from '../domain/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import { lastDays } from './days.ts'
import { change, rate, ratio } from './figures.ts'
import type { AnalyticsFilter, AnalyticsStore, DayCounts } from './ports.ts'

/** Batches are counted when they are settled: accepted by the destination, or in the dead letter queue. */
interface Deliveries {
  ingestCount: number
  /** `deliverySuccess` + `deliveryFail`. */
  deliveryCount: number
  deliverySuccess: number
  /** Batches that went to the dead letter queue. */
  deliveryFail: number
}

export interface AnalyticsSummary {
  today: Deliveries & {
    /** The same batches as `deliveryFail`. */
    dlqCount: number
    /** Items a settled batch; 0 without any. */
    avgBatchSize: number
    /** Items delivered a successful delivery: webhooks that became one request; 0 without any. */
    compressionRatio: number
  }
  trend: {
    /** Change from yesterday in percent; 0 when both are 0, 100 when only yesterday is. */
    ingestDelta: number
    deliveryDelta: number
    /** Change of the success rate from yesterday in percentage points; a day without deliveries has rate 0. */
    successRateDelta: number
  }
  counts: { projects: number; buffers: number }
}

/** One UTC day. */
export interface AnalyticsDay extends Deliveries {
  /** `YYYY-MM-DD` */
  date: string
  /** Attempts after the first. */
  retryCount: number
  itemsDelivered: number
}

export interface AnalyticsTimeseries {
  /** Oldest first, the last one is today; days without traffic included. */
  timeseries: AnalyticsDay[]
  /** Settled batches of all these days by upper bound in ms, each batch in one bucket. */
  histograms: { timeToFlush: Record<string, number>; deliveryDuration: Record<string, number> }
  totals: Omit<AnalyticsDay, 'date'> & {
    dlqCount: number
    compressionRatio: number
    /** Percent of settled batches, 0 without any. */
    successRate: number
  }
}

export interface Analytics {
  summary(principal: Principal): Promise<AnalyticsSummary>
  /** The last `days` (1 to 90) days, today included. A filter that names nothing yields zeros. */
  timeseries(principal: Principal, range: AnalyticsFilter & { days: number }): Promise<AnalyticsTimeseries>
}

export interface AnalyticsOptions {
  store: AnalyticsStore
  clock: Clock
}

export function createAnalytics({ store, clock }: AnalyticsOptions): Analytics {
  return {
    async summary(principal) {
      const scope = scopeOf(principal)
      const [yesterday, today] = lastDays(clock.now(), 2) as [string, string]
      const [days, counts] = await Promise.all([
        store.days(scope, {}, { from: yesterday, to: today }),
        store.resources(scope),
      ])
      return { ...summaryOf(countsOn(days, today), countsOn(days, yesterday)), counts }
    },
    async timeseries(principal, { days: count, ...filter }) {
      const dates = lastDays(clock.now(), count)
      const range = { from: dates[0]!, to: dates.at(-1)! }
      const days = await store.days(scopeOf(principal), filter, range)
      return timeseriesOf(dates.map((date) => countsOn(days, date)))
    },
  }
}

function summaryOf(today: DayCounts, yesterday: DayCounts): Omit<AnalyticsSummary, 'counts'> {
  const now = deliveriesOf(today)
  const before = deliveriesOf(yesterday)
  return {
    today: {
      ...now,
      dlqCount: today.dead,
      avgBatchSize: ratio(today.itemsDelivered + today.itemsDead, now.deliveryCount),
      compressionRatio: ratio(today.itemsDelivered, today.delivered),
    },
    trend: {
      ingestDelta: change(now.ingestCount, before.ingestCount),
      deliveryDelta: change(now.deliveryCount, before.deliveryCount),
      successRateDelta: successRate(now) - successRate(before),
    },
  }
}

function timeseriesOf(days: readonly DayCounts[]): AnalyticsTimeseries {
  const sum = days.reduce(plus, emptyDay(''))
  const { date: _, ...totals } = figuresOf(sum)
  return {
    timeseries: days.map(figuresOf),
    histograms: {
      timeToFlush: histogramOf(timeToFlushBounds, sum.timeToFlush),
      deliveryDuration: histogramOf(deliveryDurationBounds, sum.deliveryDuration),
    },
    totals: {
      ...totals,
      dlqCount: sum.dead,
      compressionRatio: ratio(sum.itemsDelivered, sum.delivered),
      successRate: successRate(totals),
    },
  }
}

function figuresOf(day: DayCounts): AnalyticsDay {
  return {
    date: day.day,
    ...deliveriesOf(day),
    retryCount: day.retries,
    itemsDelivered: day.itemsDelivered,
  }
}

function deliveriesOf({ ingested, delivered, dead }: DayCounts): Deliveries {
  return {
    ingestCount: ingested,
    deliveryCount: delivered + dead,
    deliverySuccess: delivered,
    deliveryFail: dead,
  }
}

function successRate({ deliverySuccess, deliveryCount }: Deliveries): number {
  return rate(deliverySuccess, deliveryCount)
}

function countsOn(days: readonly DayCounts[], day: string): DayCounts {
  return days.find((counts) => counts.day === day) ?? emptyDay(day)
}

function emptyDay(day: string): DayCounts {
  return {
    day,
    ingested: 0,
    delivered: 0,
    dead: 0,
    retries: 0,
    itemsDelivered: 0,
    itemsDead: 0,
    timeToFlush: timeToFlushBounds.map(() => 0),
    deliveryDuration: deliveryDurationBounds.map(() => 0),
  }
}

function plus(sum: DayCounts, day: DayCounts): DayCounts {
  return {
    day: sum.day,
    ingested: sum.ingested + day.ingested,
    delivered: sum.delivered + day.delivered,
    dead: sum.dead + day.dead,
    retries: sum.retries + day.retries,
    itemsDelivered: sum.itemsDelivered + day.itemsDelivered,
    itemsDead: sum.itemsDead + day.itemsDead,
    timeToFlush: sum.timeToFlush.map((count, bucket) => count + day.timeToFlush[bucket]!),
    deliveryDuration: sum.deliveryDuration.map((count, bucket) => count + day.deliveryDuration[bucket]!),
  }
}
