/**
 * Rows of deleted buffers (docs/architecture/protocol.md, "Deleted buffers"): what the owners of shards report of
 * them, and their removal. All moments are the database's own, so no clock is compared with another.
 */

import type { DeletedBuffers, Fence } from '../shard/ports.ts'
import type { Database } from './connection.ts'
import { fencedTransaction } from './shards.ts'

export interface DeletedBuffersOptions {
  /** Shards of the installation: a row goes when every one of them has reported. */
  shards: number
  /** Default 10,000. */
  everyMs?: number
  /**
   * How long after a deletion an item of the buffer may still be appended, ms: a node learns of it within a
   * second and repeats an append for ten. Far more is allowed for, since a row costs next to nothing. Default
   * 600,000.
   */
  graceMs?: number
}

/** Rows removed at once; the next round goes on. */
const REMOVED_AT_ONCE = 1_000

export function createDeletedBuffers(db: Database, options: DeletedBuffersOptions): DeletedBuffers {
  const { shards, everyMs = 10_000, graceMs = 600_000 } = options
  return {
    everyMs,
    pending: (shard) => pending(db, shard, graceMs),
    report: (fence, report) => store(db, fence, report),
    remove: () => remove(db, shards),
  }
}

async function pending(
  db: Database,
  shard: number,
  graceMs: number,
): Promise<{ before: string; uids: string[] }> {
  const [row] = await db<{ before: string; uids: string[] }[]>`
    SELECT due.before::text AS before, ARRAY(
      SELECT b.uid::text FROM buffers b
      WHERE b.deleted_at < due.before
        AND (r.shard IS NULL OR b.deleted_at >= r.deleted_before OR b.uid = ANY (r.held))) AS uids
    FROM (SELECT now() - ${graceMs}::int * interval '1 millisecond' AS before) AS due
      LEFT JOIN shard_reports r ON r.shard = ${shard}`
  if (row === undefined) throw new Error('a select without a table answered no row')
  return row
}

/** A report never takes back what an earlier one of the shard said, should the database's clock be set back. */
async function store(
  db: Database,
  fence: Fence,
  { before, position, held }: { before: string; position: number; held: string[] },
): Promise<void> {
  await fencedTransaction(
    db,
    fence,
    (transaction) => transaction`
      INSERT INTO shard_reports AS r (shard, epoch, position, deleted_before, held)
      VALUES (${fence.shard}, ${fence.epoch}, ${position}, ${before}::text::timestamptz, ${held}::uuid[])
      ON CONFLICT (shard) DO UPDATE SET epoch = excluded.epoch, position = excluded.position,
        deleted_before = excluded.deleted_before, held = excluded.held
      WHERE r.deleted_before <= excluded.deleted_before`,
  )
}

/** The feed's entry of a removed row goes too; who had not read it sees that something was cut (`config_version`). */
async function remove(db: Database, shards: number): Promise<void> {
  await db`
    WITH let_go AS (
      SELECT min(deleted_before) AS before FROM shard_reports
      WHERE shard < ${shards} HAVING count(*) = ${shards}
    ), gone AS (
      DELETE FROM buffers WHERE uid IN (
        SELECT b.uid FROM buffers b, let_go
        WHERE b.deleted_at < let_go.before
          AND NOT EXISTS (SELECT FROM shard_reports r WHERE b.uid = ANY (r.held))
        ORDER BY b.uid LIMIT ${REMOVED_AT_ONCE})
      RETURNING uid
    )
    DELETE FROM config_changes WHERE entity = 'buffer' AND id IN (SELECT uid::text FROM gone)`
}
