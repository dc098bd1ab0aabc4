/**
 * Counters that cost an addition: the hot path only adds to a number, and OpenTelemetry reads the numbers
 * when somebody scrapes. Its own counters hash the attributes of every single event.
 */
import type { Meter } from '@opentelemetry/api'

export interface Counter {
  /** `label`: one of few values, known to the code; `n` >= 0. */
  add(n: number, label?: string): void
}

/** A monotonic sum, by the values of `labelName` when there is one. */
export function counter(meter: Meter, name: string, description: string, labelName?: string): Counter {
  const sums = new Map<string, number>()
  const instrument = meter.createObservableCounter(name, { description })
  instrument.addCallback((result) => {
    if (labelName === undefined) result.observe(sums.get('') ?? 0)
    else for (const [label, sum] of sums) result.observe(sum, { [labelName]: label })
  })
  return {
    add(n, label = '') {
      sums.set(label, (sums.get(label) ?? 0) + n)
    },
  }
}

export interface LabelledCounter {
  /** `values`: one a label, each of few, known to the code; `n` >= 0. */
  add(n: number, values: readonly string[]): void
}

/** A monotonic sum by several labels, for what is rarer than a webhook. */
export function labelledCounter(
  meter: Meter,
  name: string,
  description: string,
  labelNames: readonly string[],
): LabelledCounter {
  const sums = new Map<string, { values: readonly string[]; sum: number }>()
  const instrument = meter.createObservableCounter(name, { description })
  instrument.addCallback((result) => {
    for (const { values, sum } of sums.values())
      result.observe(sum, Object.fromEntries(labelNames.map((label, index) => [label, values[index]!])))
  })
  return {
    add(n, values) {
      const key = values.join(' ')
      sums.set(key, { values, sum: (sums.get(key)?.sum ?? 0) + n })
    },
  }
}

/** Bounds of latencies in ms, from an append to a retried delivery. */
const LATENCY_BOUNDS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000]

export interface Histogram {
  record(value: number): void
}

/** A distribution of milliseconds; `bounds` are the upper ends of its buckets. */
export function latency(meter: Meter, name: string, description: string): Histogram {
  return distribution(meter, name, description, LATENCY_BOUNDS_MS, 'ms')
}

export function distribution(
  meter: Meter,
  name: string,
  description: string,
  bounds: readonly number[],
  unit?: string,
): Histogram {
  return meter.createHistogram(name, {
    description,
    ...(unit === undefined ? {} : { unit }),
    advice: { explicitBucketBoundaries: [...bounds] },
  })
}
