export interface Backoff {
  readonly initialMs: number
  readonly maxMs: number
  readonly multiplier: number
}

/**
 * Delay in whole ms before retry `retry` (the second attempt is retry 1): `initialMs * multiplier^(retry-1)`,
 * capped at `maxMs` (specification, "Processing model" 5). 0 for a retry below 1: a first attempt waits for
 * nothing.
 */
export function retryDelayMs(backoff: Backoff, retry: number): number {
  if (retry < 1) return 0
  return Math.round(Math.min(backoff.initialMs * backoff.multiplier ** (retry - 1), backoff.maxMs))
}
