/** `amount` × `part` ÷ `whole`, rounded half up. The product may exceed 2^53, so it is taken in big integers. */
export function proportion(amount: number, part: number, whole: number): number {
  const doubled = 2n * BigInt(amount) * BigInt(part)
  return Number((doubled + BigInt(whole)) / (2n * BigInt(whole)))
}
