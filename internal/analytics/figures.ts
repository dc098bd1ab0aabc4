/** Ratios, rates and changes (docs/reference/analytics.md). Nothing is rounded. */

/** `of` by `by`; 0 when there is nothing to divide by. */
export function ratio(of: number, by: number): number {
  return by === 0 ? 0 : of / by
}

/** `part` of `whole` in percent, 0 to 100; 0 of nothing. */
export function rate(part: number, whole: number): number {
  return 100 * ratio(part, whole)
}

/** Change in percent; 0 when both are 0, 100 when only `before` is. */
export function change(now: number, before: number): number {
  if (before === 0) return now === 0 ? 0 : 100
  return (100 * (now - before)) / before
}
