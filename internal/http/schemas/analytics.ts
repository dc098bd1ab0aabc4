import { deliveryDurationBounds, histogramOf, timeToFlushBounds } from '../../domain/histogram.ts'
import type { Schema } from './shape.ts'
import { closed, count, list, number, text } from './shape.ts'

/** docs/reference/analytics.md. */

const deliveries = {
  ingestCount: count('Items accepted; duplicates are not counted.'),
  deliveryCount: count('Batches settled: deliverySuccess + deliveryFail.'),
  deliverySuccess: count('Batches that the destination accepted.'),
  deliveryFail: count('Batches that went to the dead letter queue.'),
}
const dlqCount = count('Batches that went to the dead letter queue.')
const compressionRatio = number('Items delivered for each successful delivery; 0 without any.', {
  minimum: 0,
})

export const analyticsSummarySchema = closed(
  'AnalyticsSummary',
  "Today's figures (UTC) and their change from yesterday.",
  {
    today: closed('AnalyticsToday', 'The UTC day so far.', {
      ...deliveries,
      dlqCount,
      avgBatchSize: number('Items for each settled batch; 0 without any.', { minimum: 0 }),
      compressionRatio,
    }),
    trend: closed('AnalyticsTrend', 'Change from yesterday, the whole UTC day.', {
      ingestDelta: number('Percent; 0 when both days are 0, 100 when only yesterday is.', { minimum: -100 }),
      deliveryDelta: number('Percent; 0 when both days are 0, 100 when only yesterday is.', {
        minimum: -100,
      }),
      successRateDelta: number(
        'Percentage points between the success rates; a day without deliveries has rate 0.',
        { minimum: -100, maximum: 100 },
      ),
    }),
    counts: closed('AnalyticsCounts', 'What there is now, as far as the caller sees it.', {
      projects: count('Projects.'),
      buffers: count('Buffers, without deleted ones.'),
    }),
  },
)

const figures = {
  ...deliveries,
  retryCount: count('Delivery attempts after the first.'),
  itemsDelivered: count('Items of the batches that the destination accepted.'),
}

const daySchema = closed('AnalyticsDay', 'One UTC day.', {
  date: text('YYYY-MM-DD.', { pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' }),
  ...figures,
})

export const analyticsTimeseriesSchema = closed('AnalyticsTimeseries', 'Figures of the last UTC days.', {
  timeseries: list(
    'One entry a day, oldest first, the last one is today; days without traffic included.',
    daySchema,
  ),
  histograms: closed(
    'AnalyticsHistograms',
    'Settled batches by upper bound in ms; a batch is counted in one bucket.',
    {
      timeToFlush: histogram(
        'TimeToFlushHistogram',
        'From the first item of a batch to its flush.',
        timeToFlushBounds,
      ),
      deliveryDuration: histogram(
        'DeliveryDurationHistogram',
        "Of a batch's last delivery attempt.",
        deliveryDurationBounds,
      ),
    },
  ),
  totals: closed('AnalyticsTotals', 'All these days together.', {
    ...figures,
    dlqCount,
    compressionRatio,
    successRate: number('Percent of settled batches; 0 without any.', { minimum: 0, maximum: 100 }),
  }),
})

function histogram(title: string, description: string, bounds: readonly number[]): Schema {
  const buckets = Object.keys(histogramOf(bounds, []))
  return closed(
    title,
    description,
    Object.fromEntries(buckets.map((bound) => [bound, count(`Batches up to ${bound} ms.`)])),
  )
}
