/** Long lists in pieces: whatever else shares the event loop (ingest, shards) has its turn after each. */
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Entries of one turn: a few ms of work at what a stored resource takes. */
export const ENTRIES_A_TURN = 100

/** As `values.map(map)`. Input and output that are ready are handled after every `ENTRIES_A_TURN` values. */
export async function mapInTurns<Value, Result>(
  values: readonly Value[],
  map: (value: Value) => Result,
): Promise<Result[]> {
  const results: Result[] = []
  for (const [index, value] of values.entries()) {
    if (index > 0 && index % ENTRIES_A_TURN === 0) await nextTurn()
    results.push(map(value))
  }
  return results
}

/** As `JSON.stringify(values)` with the end of its line, in UTF-8. */
export async function jsonInTurns(values: readonly unknown[]): Promise<Buffer> {
  const pieces: Buffer[] = []
  for (let from = 0; from < values.length; from += ENTRIES_A_TURN) {
    if (from > 0) await nextTurn()
    const text = JSON.stringify(values.slice(from, from + ENTRIES_A_TURN)).slice(1, -1)
    pieces.push(Buffer.from(`${from === 0 ? '[' : ','}${text}`))
  }
  return Buffer.concat([...pieces, Buffer.from(pieces.length === 0 ? '[]\n' : ']\n')])
}
