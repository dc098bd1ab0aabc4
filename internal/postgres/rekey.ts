/**
 * Moves all secrets to the first key (docs/decisions/0041-keys-of-secrets.md), beside nodes that run: some rows a
 * transaction, and only rows that nobody changed since they were read. It finds its rows by their keys, so a run that was
 * cut off is completed by another one.
 */

import { mapSecrets } from '../domain/buffer-secrets.ts'
import type { BufferRow } from './buffer-rows.ts'
import type { Database } from './connection.ts'
import { type SealedRows, sealedRows } from './secret-keys.ts'
import { type SecretBox, SecretError } from './secrets.ts'

/** Each is a change that the nodes read again. */
const ROWS_AT_ONCE = 100

export interface RekeyOptions {
  /** After each transaction: how many rows were moved so far. */
  onProgress: (rows: number) => void
  rowsAtOnce?: number
}

export interface Rekeyed {
  /** Rows that were moved. */
  readonly rows: number
  /** What is not sealed by the first key alone: its key is missing, or it cannot be opened. */
  readonly left: readonly SealedRows[]
}

type Sealed = Pick<BufferRow, 'uid' | 'version' | 'config'>

export async function rekey(db: Database, box: SecretBox, options: RekeyOptions): Promise<Rekeyed> {
  let rows = 0
  // Whatever a node wrote meanwhile is found by the next pass; the last one finds nothing that can be opened.
  for (let tried = -1; tried !== 0; ) {
    tried = 0
    for (const { keyIds } of await otherRows(db, box)) {
      if (keyIds.some((keyId) => !box.keyIds.includes(keyId))) continue
      tried += await rekeyKind(db, box, keyIds, options.rowsAtOnce ?? ROWS_AT_ONCE, (some) => {
        rows += some
        options.onProgress(rows)
      })
    }
  }
  return { rows, left: await otherRows(db, box) }
}

/** Rows that are not sealed by the first key alone. */
export async function otherRows(db: Database, box: SecretBox): Promise<SealedRows[]> {
  const all = await sealedRows(db)
  return all.filter(({ keyIds }) => keyIds.length !== 1 || keyIds[0] !== box.keyIds[0])
}

/** Answers how many rows could be opened, also those that somebody else changed in time. */
async function rekeyKind(
  db: Database,
  box: SecretBox,
  keyIds: readonly string[],
  limit: number,
  onMoved: (rows: number) => void,
): Promise<number> {
  let all = 0
  for (let after = '00000000-0000-0000-0000-000000000000'; ; ) {
    const page = await db<Sealed[]>`
      SELECT uid, version, config FROM buffers
      WHERE secret_keys(config) IS NOT NULL AND secret_keys(config) COLLATE "C" = ${keyIds.join(',')}
        AND uid > ${after} ORDER BY uid LIMIT ${limit}`
    const last = page.at(-1)
    if (last === undefined) return all
    after = last.uid
    const rows = page.flatMap((row) => resealed(box, row))
    all += rows.length
    const moved = await write(db, rows)
    if (moved > 0) onMoved(moved)
  }
}

/** None: one of its secrets cannot be opened, so the row stays as it is. */
function resealed(box: SecretBox, { uid, version, config }: Sealed): Sealed[] {
  try {
    const anew = mapSecrets({ ...config, enabled: true }, (value, path) => {
      const place = [uid, ...path]
      return box.seal(box.open(value, place), place)
    })
    const { enabled: _, ...moved } = anew
    return [{ uid, version, config: moved }]
  } catch (error) {
    if (error instanceof SecretError) return []
    throw error
  }
}

/** Only rows that are still as they were read. Locked in the order of uids, as the owners of shards lock them. */
async function write(db: Database, rows: readonly Sealed[]): Promise<number> {
  if (rows.length === 0) return 0
  const uids = rows.map(({ uid }) => uid)
  const versions = rows.map(({ version }) => version)
  const configs = rows.map(({ config }) => JSON.stringify(config))
  return db.begin(async (transaction) => {
    await transaction`SELECT set_config('penstock.rekeying', 'on', true)`
    const { count } = await transaction`
      WITH wanted AS (
        SELECT * FROM unnest(${uids}::uuid[], ${versions}::bigint[], ${configs}::text[]) AS w (uid, version, config)
      ), locked AS (
        SELECT b.uid FROM buffers b JOIN wanted w ON w.uid = b.uid AND w.version = b.version
        ORDER BY b.uid FOR NO KEY UPDATE OF b
      )
      UPDATE buffers b SET config = w.config::jsonb FROM wanted w JOIN locked USING (uid)
      WHERE b.uid = w.uid AND b.version = w.version`
    return count
  })
}
