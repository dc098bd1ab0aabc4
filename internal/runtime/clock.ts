/** Time and randomness as arguments: what the simulator replaces. */
export interface Clock {
  /** Wall clock, Unix epoch milliseconds. */
  now(): number
  /** Monotonic milliseconds, for durations and leases. */
  monotonic(): number
  /** Runs `task` once after `ms` milliseconds; the returned function cancels it. */
  after(ms: number, task: () => void): () => void
}

/** Source of random bytes and of fractions in [0, 1). */
export interface Randomness {
  bytes(size: number): Uint8Array
  fraction(): number
}
