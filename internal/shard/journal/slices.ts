/** Cuts entries, in their order, into slices of at most so much weight. One entry that is heavier goes alone. */
export function* slicesOf<T>(
  entries: Iterable<T>,
  most: number,
  weightOf: (entry: T) => number = () => 1,
): Generator<T[], void> {
  let slice: T[] = []
  let weight = 0
  for (const entry of entries) {
    if (slice.length > 0 && weight + weightOf(entry) > most) {
      yield slice
      slice = []
      weight = 0
    }
    slice.push(entry)
    weight += weightOf(entry)
  }
  if (slice.length > 0) yield slice
}
