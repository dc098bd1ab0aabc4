/**
 * The time `months` months after `from`, both Unix ms: the same day and time of day in UTC, or the last day of a month
 * that is too short. Counted from the first day each time, so that 31 January leads to 28 February and 31 March.
 */
export function monthsAfter(from: number, months: number): number {
  const date = new Date(from)
  const day = date.getUTCDate()
  date.setUTCDate(1)
  date.setUTCMonth(date.getUTCMonth() + months)
  date.setUTCDate(Math.min(day, daysInMonth(date)))
  return date.getTime()
}

function daysInMonth(date: Date): number {
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
}
