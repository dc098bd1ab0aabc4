/** Each payload holds `L~<10 digits>~`: the sink finds items by it in any body. */
const MARKER = Buffer.from('L~')
const DIGITS = 10

export function markerOf(id: number): string {
  return `L~${String(id).padStart(DIGITS, '0')}~`
}

/** Ids in the order in which they stand in the body. */
export function idsIn(body: Buffer): number[] {
  const ids: number[] = []
  for (let at = body.indexOf(MARKER); at >= 0; at = body.indexOf(MARKER, at + DIGITS)) {
    ids.push(Number(body.toString('latin1', at + 2, at + 2 + DIGITS)))
  }
  return ids
}
