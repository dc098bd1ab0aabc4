import type { Clock } from './clock.ts'

/** Resolves after `ms` milliseconds of the clock; nothing cancels it. */
export function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve))
}
