/**
 * Which keys the secrets of rows are sealed by (docs/decisions/0041-keys-of-secrets.md). The index of migration 044 answers:
 * the cost grows with the number of different keys and of the rows that are counted, not with the table.
 */

import type { Database } from './connection.ts'

/** Rows whose secrets are sealed by just these keys. `?`: a text that is not sealed. */
export interface SealedRows {
  readonly table: 'buffers'
  readonly keyIds: readonly string[]
  readonly rows: number
}

/** Rows that cannot be opened, by the key that is missing; a row that lacks two counts for both. */
export interface RowsWithoutKey {
  readonly table: 'buffers'
  readonly keyId: string
  readonly rows: number
}

/** Deleted buffers too, for what they hold is still delivered. */
export async function sealedRows(db: Database): Promise<SealedRows[]> {
  const kinds = await kindsOf(db)
  return Promise.all(
    kinds.map(async (kind) => ({ table: 'buffers', keyIds: kind.split(','), rows: await count(db, kind) })),
  )
}

export async function rowsWithoutKey(db: Database, keyIds: readonly string[]): Promise<RowsWithoutKey[]> {
  const missing = new Map<string, number>()
  for (const kind of await kindsOf(db)) {
    const lacking = kind.split(',').filter((keyId) => !keyIds.includes(keyId))
    const rows = lacking.length > 0 ? await count(db, kind) : 0
    for (const keyId of lacking) missing.set(keyId, (missing.get(keyId) ?? 0) + rows)
  }
  return [...missing].map(([keyId, rows]) => ({ table: 'buffers', keyId, rows }))
}

/** Jumps from one value of the index to the next. */
async function kindsOf(db: Database): Promise<string[]> {
  const rows = await db<{ kind: string }[]>`
    WITH RECURSIVE kinds AS (
      (SELECT secret_keys(config) COLLATE "C" AS kind FROM buffers
        WHERE secret_keys(config) IS NOT NULL ORDER BY 1 LIMIT 1)
      UNION ALL
      SELECT (SELECT secret_keys(config) COLLATE "C" FROM buffers
          WHERE secret_keys(config) IS NOT NULL AND secret_keys(config) COLLATE "C" > k.kind ORDER BY 1 LIMIT 1)
        FROM kinds k WHERE k.kind IS NOT NULL
    ) SELECT kind FROM kinds WHERE kind IS NOT NULL`
  return rows.map(({ kind }) => kind)
}

async function count(db: Database, kind: string): Promise<number> {
  const [row] = await db<{ rows: number }[]>`
    SELECT count(*) AS rows FROM buffers
    WHERE secret_keys(config) IS NOT NULL AND secret_keys(config) COLLATE "C" = ${kind}`
  return row?.rows ?? 0
}
