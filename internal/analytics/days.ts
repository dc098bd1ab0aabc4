/** UTC days as text, `YYYY-MM-DD`. */

const DAY_MS = 86_400_000

/** The UTC day of a moment (Unix ms), or one that lies `daysBefore` earlier. */
export function dayOf(at: number, daysBefore = 0): string {
  return new Date(at - daysBefore * DAY_MS).toISOString().slice(0, 10)
}

/** The last `count` days up to that of `at`, oldest first. */
export function lastDays(at: number, count: number): string[] {
  return Array.from({ length: count }, (_, index) => dayOf(at, count - 1 - index))
}
