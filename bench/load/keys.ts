/** Which key an item gets: numbers at random, repeatable by their seed. */
import { seededFractions } from '../../test/support/seeded.ts'

export interface Keys {
  /** How many there are. */
  count: number
  /** Set: Zipf's law with this exponent; key n comes with weight 1 / (n + 1)^zipf. Unset: all alike. */
  zipf?: number
}

/** Numbers from 0 to `count - 1`. */
export function keyNumbers({ count, zipf }: Keys, seed: number): () => number {
  const fraction = seededFractions(seed)
  if (zipf === undefined) return () => Math.floor(fraction() * count)
  const sums = weightSums(count, zipf)
  const total = sums[count - 1]!
  return () => firstAbove(sums, fraction() * total)
}

/** As the requests name it. */
export function keyName(n: number): string {
  return `k${String(n).padStart(6, '0')}`
}

function weightSums(count: number, exponent: number): Float64Array {
  const sums = new Float64Array(count)
  let sum = 0
  for (let n = 0; n < count; n++) {
    sum += (n + 1) ** -exponent
    sums[n] = sum
  }
  return sums
}

/** Index of the first of the ascending `values` that is greater; the last one when none is. */
function firstAbove(values: Float64Array, wanted: number): number {
  let [low, high] = [0, values.length - 1]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (values[middle]! > wanted) high = middle
    else low = middle + 1
  }
  return low
}
