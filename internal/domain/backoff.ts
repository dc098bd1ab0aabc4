/** Delay between delivery attempts (docs/reference/buffers.md, "Retries"). */
import type { BufferConfig } from './model.ts'

export type Backoff = BufferConfig['throughput']['backoff']

/**
 * Milliseconds before retry `n` (n >= 1 follows the first attempt): `initialMs * multiplier^(n-1)`, rounded, at
 * most `maxMs`. Throws when `n` is no positive integer.
 */
export function backoffDelayMs(backoff: Backoff, n: number): number {
  if (!Number.isSafeInteger(n) || n < 1) throw new RangeError(`retry number ${n}`)
  // 0 times an overflowed power would be NaN.
  if (backoff.initialMs === 0) return 0
  return Math.min(Math.round(backoff.initialMs * backoff.multiplier ** (n - 1)), backoff.maxMs)
}
