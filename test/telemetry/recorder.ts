/** A logger whose lines, and a meter whose numbers, a test can read. */
import type { Meter } from '@opentelemetry/api'
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus'
import { metrics } from '@opentelemetry/sdk-node'

import { createLogger, type Logger } from '../../internal/telemetry/logger.ts'

export interface Recorder {
  log: Logger
  lines: Record<string, unknown>[]
  meter: Meter
  /** Values by name and labels in Prometheus' spelling, such as `penstock_flushes_total{reason="items"}`. */
  numbers(): Promise<Record<string, number>>
}

export function recorder(level = 'debug'): Recorder {
  const lines: Record<string, unknown>[] = []
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) }
  const exporter = new PrometheusExporter({
    preventServerStart: true,
    withoutScopeInfo: true,
    withoutTargetInfo: true,
  })
  const provider = new metrics.MeterProvider({ readers: [exporter] })
  const numbers = async () => {
    const { resourceMetrics } = await exporter.collect()
    return Object.fromEntries(
      resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics.flatMap(valuesOf)),
    )
  }
  return {
    log: createLogger({ level, role: 'test', destination }),
    lines,
    meter: provider.getMeter('test'),
    numbers,
  }
}

type Metric = metrics.MetricData

/** Of a distribution the sum and the count. */
function valuesOf({ descriptor: { name }, dataPoints }: Metric): [string, number][] {
  return dataPoints.flatMap(({ attributes, value }): [string, number][] => {
    const labels = Object.entries(attributes).map(([key, text]) => `${key}=${text}`)
    const suffix = labels.length > 0 ? `{${labels.join()}}` : ''
    if (typeof value === 'number') return [[`${name}${suffix}`, value]]
    const { sum, count } = value as { sum?: number; count: number }
    return [
      [`${name}.sum${suffix}`, sum ?? 0],
      [`${name}.count${suffix}`, count],
    ]
  })
}
