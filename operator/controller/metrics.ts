/** What the operator tells of itself. Numbers only; no names of resources, which would be a label each. */
import type { Meter } from '@opentelemetry/api'
import type { ControllerTelemetry } from './controller.ts'

/** Upper ends of the buckets, ms: from a pass that changes nothing to one that waits for a slow service. */
const BOUNDS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000]

/** Where the gauges are read when somebody scrapes. */
export interface ControllerSources {
  /** Keys that wait for a worker. */
  depth(): number
  /** Keys whose last pass failed. */
  failing(): number
  leading(): boolean
  /** Seconds since each collection was last heard of, by its plural; a collection that never was is left out. */
  silence(): Iterable<readonly [collection: string, seconds: number]>
}

export interface OperatorMetrics {
  readonly controller: ControllerTelemetry
  readonly reflector: {
    listed(event: { collection: string; objects: number }): void
    failed(event: { collection: string }): void
  }
}

export function operatorMetrics(meter: Meter, sources: ControllerSources): OperatorMetrics {
  gauges(meter, sources)
  const reconciles = meter.createCounter('penstock_operator_reconciles', {
    description: 'Passes by their result',
  })
  const errors = meter.createCounter('penstock_operator_reconcile_errors', {
    description: 'Passes that failed',
  })
  const duration = latency(meter, 'penstock_operator_reconcile_duration', 'Duration of a pass')
  const wait = latency(meter, 'penstock_operator_queue_wait', 'How long a resource waited for its pass')
  const lists = meter.createCounter('penstock_operator_lists', {
    description: 'Collections listed completely',
  })
  const failures = meter.createCounter('penstock_operator_watch_failures', {
    description: 'Lists and watches that failed',
  })
  // Told from the first scrape on: a counter that appears with its first error shows no increase.
  errors.add(0)
  return {
    controller: {
      pass({ result, durationMs, waitedMs }) {
        reconciles.add(1, { result })
        if (result === 'error') errors.add(1)
        duration.record(durationMs)
        wait.record(waitedMs)
      },
    },
    reflector: {
      listed: ({ collection }) => lists.add(1, { collection }),
      failed: ({ collection }) => failures.add(1, { collection }),
    },
  }
}

function gauges(meter: Meter, sources: ControllerSources): void {
  const observe = (name: string, description: string, read: () => number) =>
    meter.createObservableGauge(name, { description }).addCallback((result) => result.observe(read()))
  observe('penstock_operator_queue_depth', 'Resources that wait for a worker', sources.depth)
  observe('penstock_operator_failing_resources', 'Resources whose last pass failed', sources.failing)
  observe('penstock_operator_leading', '1 on the replica that leads', () => (sources.leading() ? 1 : 0))
  meter
    .createObservableGauge('penstock_operator_watch_silence_seconds', {
      description: 'Seconds since the last successful list or watch',
    })
    .addCallback((result) => {
      for (const [collection, seconds] of sources.silence()) result.observe(seconds, { collection })
    })
}

function latency(meter: Meter, name: string, description: string) {
  return meter.createHistogram(name, {
    description,
    unit: 'ms',
    advice: { explicitBucketBoundaries: BOUNDS_MS },
  })
}
