/**
 * The owners' side of the dead letter queue (docs/architecture/protocol.md, "Dead letters"), every write behind the
 * shard's fence.
 */

import type { BatchName } from '../shard/journal/batch-name.ts'
import {
  BodyConflictError,
  type DeadBatch,
  type DeadLetters,
  type DeadWrite,
  type Fence,
} from '../shard/ports.ts'
import { askByName, named } from './batch-names.ts'
import type { Database, Transaction } from './connection.ts'
import { DeadLetterUploads, isInline, uploadedBody } from './dead-letter-uploads.ts'
import { fencedTransaction, raiseEpoch, remembered, replaceEpoch } from './shards.ts'

export function createDeadLetters(db: Database): DeadLetters {
  const uploads = new DeadLetterUploads(db)
  return {
    remembered: (shard) => remembered(db, shard),
    replaceEpoch: (fence, known) => replaceEpoch(db, fence, known),
    raiseEpoch: (fence) => raiseEpoch(db, fence),
    known: (fence, batches) => known(db, fence, batches),
    upload: (fence, batch) => uploads.store(fence, batch),
    write: (fence, batch) => write(db, fence, batch),
    forgetTombstones: (fence, batches) => forgetTombstones(db, fence, batches),
  }
}

function known(db: Database, fence: Fence, batches: BatchName[]): Promise<BatchName[]> {
  return askByName(batches, (some) =>
    fencedTransaction(db, fence, async (transaction) => [
      ...(await transaction<BatchName[]>`
        SELECT group_id AS "groupId", version FROM dlq_items
        WHERE (group_id, version) IN (SELECT * FROM ${named(transaction, some)})
        UNION
        SELECT group_id, version FROM dlq_tombstones
        WHERE (group_id, version) IN (SELECT * FROM ${named(transaction, some)})`),
    ]),
  )
}

function write(db: Database, fence: Fence, batch: DeadBatch): Promise<DeadWrite> {
  return fencedTransaction(db, fence, async (transaction) => {
    const inserted = await insertItem(transaction, batch)
    if (!inserted)
      return { outcome: 'known', dlqId: await requireSameBody(transaction, batch), paused: false }
    if (await yieldToTombstone(transaction, batch)) return { outcome: 'known', dlqId: null, paused: false }
    const paused = await countDead(transaction, batch.bufferUid)
    return { outcome: 'stored', dlqId: batch.dlqId, paused }
  })
}

/** Call it for every committed `dead`: rows that are removed later then leave no tombstone. */
async function forgetTombstones(db: Database, fence: Fence, batches: BatchName[]): Promise<void> {
  if (batches.length === 0) return
  await fencedTransaction(db, fence, async (transaction) => {
    // In this order: the update waits for a removal under way, whose tombstone the second statement sees.
    await transaction`UPDATE dlq_items SET recorded = true
      WHERE (group_id, version) IN (SELECT * FROM ${named(transaction, batches)})`
    await transaction`DELETE FROM dlq_tombstones
      WHERE (group_id, version) IN (SELECT * FROM ${named(transaction, batches)})`
  })
}

/** false: the name is taken. */
async function insertItem(transaction: Transaction, batch: DeadBatch): Promise<boolean> {
  const { body, bodyId, messageIds } = await contentOf(transaction, batch)
  const inserted = await transaction`
    INSERT INTO dlq_items (
      dlq_id, customer_id, project_id, buffer_id, buffer_uid, group_id, version,
      group_key, message_ids, first_payload_preview,
      reason, last_error, last_status_code, last_response, attempt, item_count, segment,
      first_item_at, last_activity_at, payload_bytes, body, body_id, body_sha256, created_at
    ) VALUES (
      ${batch.dlqId}, ${batch.customerId}, ${batch.projectId}, ${batch.bufferId}, ${batch.bufferUid},
      ${batch.groupId}, ${batch.version},
      ${JSON.stringify(batch.groupKey)}::text::json, ${messageIds},
      ${JSON.stringify(batch.firstPayloadPreview)}::text::json,
      ${batch.reason}, ${batch.lastError.replaceAll('\0', '\ufffd')}, ${batch.lastStatusCode},
      ${batch.lastResponse}, ${batch.attempt}, ${batch.itemCount}, ${batch.segment},
      ${batch.firstItemAt}, ${batch.lastActivityAt}, ${batch.payloadBytes}, ${body}, ${bodyId},
      ${batch.bodySha256}, ${batch.createdAt}
    ) ON CONFLICT (group_id, version) DO NOTHING RETURNING dlq_id`
  return inserted.length > 0
}

/** Whatever grows with the batch: sent along when it is small, else stored by now. */
async function contentOf(transaction: Transaction, batch: DeadBatch) {
  if (!isInline(batch)) return { body: null, ...(await uploadedBody(transaction, batch)) }
  const body = Buffer.from(batch.body).toString('base64')
  return {
    body: transaction`decode(${body}::text, 'base64')`,
    bodyId: null,
    messageIds: transaction`${JSON.stringify(batch.messageIds)}::text::json`,
  }
}

/** The id of the dead letter of this name; null: its user removed it since. */
async function requireSameBody(transaction: Transaction, batch: DeadBatch): Promise<string | null> {
  const [stored] = await transaction<{ dlqId: string; same: boolean }[]>`
    SELECT dlq_id AS "dlqId", body_sha256 = ${batch.bodySha256} AS same FROM dlq_items
    WHERE group_id = ${batch.groupId} AND version = ${batch.version}`
  // No row any more: its user removed it since, so the name was known.
  if (stored?.same === false) {
    throw new BodyConflictError(`grp:${batch.groupId}:v${batch.version} is stored with another body`)
  }
  return stored?.dlqId ?? null
}

/**
 * Takes the row back when its user removed an earlier one of the name. Looked up after the insert, which
 * waits for a removal under way: looked up before, a tombstone committed in between would be missed.
 */
async function yieldToTombstone(transaction: Transaction, batch: DeadBatch): Promise<boolean> {
  const removed = await transaction`
    DELETE FROM dlq_items i USING dlq_tombstones t
    WHERE i.group_id = ${batch.groupId} AND i.version = ${batch.version}
      AND t.group_id = i.group_id AND t.version = i.version
    RETURNING i.dlq_id`
  return removed.length > 0
}

/** Counts up and pauses the buffer at its threshold, unless it is deleted. Returns whether it did so now. */
async function countDead(transaction: Transaction, bufferUid: string): Promise<boolean> {
  const [row] = await transaction<{ paused: boolean }[]>`
    WITH before AS (
      SELECT uid, enabled AND deleted_at IS NULL
        AND consecutive_dlq_count + 1 >= (config->>'dlqPauseThreshold')::int AS pauses
      FROM buffers WHERE uid = ${bufferUid} FOR NO KEY UPDATE)
    UPDATE buffers b SET
      consecutive_dlq_count = b.consecutive_dlq_count + 1,
      dead_buried = b.dead_buried + 1,
      enabled = b.enabled AND NOT before.pauses,
      paused_at = CASE WHEN before.pauses THEN clock_timestamp() ELSE b.paused_at END,
      paused_reason = CASE WHEN before.pauses THEN 'consecutive_dead_letters' ELSE b.paused_reason END
    FROM before WHERE b.uid = before.uid
    RETURNING before.pauses AS paused`
  return row?.paused ?? false
}
