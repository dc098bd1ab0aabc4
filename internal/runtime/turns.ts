/** Long lists in pieces: whatever else shares the event loop (ingest, shards) has its turn after each. */
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Entries of one turn: a few ms of work at what a stored resource takes. */
export const ENTRIES_A_TURN = 100
/** Characters of JSON of one turn: a few ms to write and to encode. */
const TEXT_A_TURN = 256 * 1024

/** As `values.map(map)`. Input and output that are ready are handled after every `entriesATurn` values. */
export async function mapInTurns<Value, Result>(
  values: readonly Value[],
  map: (value: Value) => Result,
  entriesATurn: number = ENTRIES_A_TURN,
): Promise<Result[]> {
  const results: Result[] = []
  for (const [index, value] of values.entries()) {
    if (index > 0 && index % entriesATurn === 0) await nextTurn()
    results.push(map(value))
  }
  return results
}

/** As `JSON.stringify(values)` with the end of its line, in UTF-8. Only one entry that is larger than a turn takes longer. */
export async function jsonInTurns(values: readonly unknown[]): Promise<Buffer> {
  const pieces: Buffer[] = []
  let text = '['
  let entries = 0
  for (const [index, value] of values.entries()) {
    if (entries === ENTRIES_A_TURN || text.length >= TEXT_A_TURN) {
      pieces.push(Buffer.from(text))
      text = ''
      entries = 0
      await nextTurn()
    }
    if (index > 0) text += ','
    text += JSON.stringify(value) ?? 'null'
    entries++
  }
  return Buffer.concat([...pieces, Buffer.from(`${text}]\n`)])
}
