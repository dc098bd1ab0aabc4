/** The parts of docs/reference/analytics.md that the code knows. */
import { deliveryDurationBounds, histogramOf, timeToFlushBounds } from '../../internal/domain/histogram.ts'
import { responseSchemas } from '../../internal/http/schemas/registry.ts'
import type { Schema } from '../../internal/http/schemas/shape.ts'
import { integerOf } from './limits.ts'
import { schemaRows } from './schema-rows.ts'
import { code, table } from './table.ts'

/** Of a histogram its buckets say less than the list of them does. */
const HISTOGRAM = /^histograms\.\w+\./

export function summaryFields(): string {
  return fields(responseSchemas.AnalyticsSummary)
}

export function timeseriesFields(): string {
  return fields(responseSchemas.AnalyticsTimeseries)
}

function fields(schema: Schema): string {
  const rows = schemaRows(schema).filter(({ path }) => !HISTOGRAM.test(path))
  return table(
    ['field', 'type', 'meaning'],
    rows.map(({ path, type, meaning }) => [code(path), type, meaning]),
  )
}

export function buckets(): string {
  return table(
    ['histogram', 'upper bounds of its buckets, ms'],
    [
      ['`timeToFlush`', boundsOf(timeToFlushBounds)],
      ['`deliveryDuration`', boundsOf(deliveryDurationBounds)],
    ],
  )
}

function boundsOf(bounds: readonly number[]): string {
  const texts = Object.keys(histogramOf(bounds, [])).map((bound) => `"${bound}"`)
  return code(...texts)
}

export function daysParameter(): string {
  return `\`days\`: ${integerOf('/v1/analytics/timeseries', 'days')}.`
}
