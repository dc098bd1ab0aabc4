/** The spans of a lease, all from its TTL (heartbeat 1 s, TTL 5 s: docs/architecture/protocol.md, "Membership"). */
export interface LeaseTimes {
  /** The broker forgets a lease that was not renewed for this long, ms. */
  readonly ttlMs: number
  /** From the beginning of one renewal to that of the next, ms, shortened by less than `jitterMs`. */
  readonly heartbeatMs: number
  readonly jitterMs: number
  /** For one renewal with all that it needs: it ends before the next one begins, ms. */
  readonly writeMs: number
  /** How much earlier an owner gives its lease up, and how much later others do, ms. */
  readonly marginMs: number
  /** Nobody counts as gone for so long after the own watch began, ms. */
  readonly unsureMs: number
  /** Two heartbeats: a watch that did not bring a stored renewal by then is broken, and what it said is stale, ms. */
  readonly silenceMs: number
}

export const DEFAULT_LEASE_TTL_MS = 5_000

/** `ttlMs`: at least 500, at most 60,000; else RangeError. */
export function leaseTimes(ttlMs: number): LeaseTimes {
  if (!(ttlMs >= 500 && ttlMs <= 60_000)) throw new RangeError(`not the TTL of a lease: ${ttlMs} ms`)
  return {
    ttlMs,
    heartbeatMs: ttlMs * 0.2,
    jitterMs: ttlMs * 0.02,
    writeMs: ttlMs * 0.16,
    marginMs: ttlMs * 0.1,
    unsureMs: ttlMs * 1.2,
    silenceMs: ttlMs * 0.4,
  }
}
