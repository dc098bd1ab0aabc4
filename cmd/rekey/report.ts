/** What `npm run rekey` prints of rows that other keys than the first one seal. */
import type { SealedRows } from '../../internal/postgres/secret-keys.ts'

/** A line for each table and keys. `known`: ids of the keys that are configured. `tried`: to open them, in vain. */
export function leftLines(left: readonly SealedRows[], known: readonly string[], tried: boolean): string {
  return left.map((rows) => `${lineOf(rows, known, tried)}\n`).join('')
}

function lineOf({ table, keyIds, rows }: SealedRows, known: readonly string[], tried: boolean): string {
  const missing = keyIds.filter((keyId) => !known.includes(keyId))
  const what = `${rowsText(rows)} of ${table}`
  if (missing.includes('?')) return `${what} with a secret that is not encrypted`
  if (missing.length > 0) return `${what} under ${keysText(missing)}, which is not configured`
  return `${what} under ${keysText(keyIds)}${tried ? ' cannot be opened: a text is damaged' : ''}`
}

export function rowsText(rows: number): string {
  return `${rows} ${rows === 1 ? 'row' : 'rows'}`
}

function keysText(keyIds: readonly string[]): string {
  return `the key ${keyIds.join(', ')}`
}
