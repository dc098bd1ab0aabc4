/** The users' side of the dead letter queue (docs/reference/api.md, "Dead letters"): one SQL operation a function. */

import type { DeadLetterFilter, DeadLetterStore } from '../dlq/ports.ts'
import type { DlqItem, DlqReason } from '../domain/model.ts'
import type { Scope } from '../domain/principal.ts'
import type { Database } from './connection.ts'
import { DeadLetterBodies } from './dead-letter-bodies.ts'
import { reachable } from './scope.ts'

interface ItemRow {
  dlq_id: string
  customer_id: string
  project_id: string
  buffer_id: string
  group_id: string
  version: number
  group_key: string
  message_ids: string[]
  first_payload_preview: string
  reason: DlqReason
  last_error: string
  last_status_code: number
  last_response: string | null
  attempt: number
  item_count: number
  segment: number
  first_item_at: number
  last_activity_at: number
  payload_bytes: number
  payload_stored: boolean
  retry_count: number
  last_retry_at: number | null
  created_at: number
}

export function createDeadLetterStore(db: Database): DeadLetterStore {
  const bodies = new DeadLetterBodies(db)
  return {
    async list(scope, filter) {
      return (await listItems(db, scope, filter)).map(itemOf)
    },
    async hasBuffer(scope, bufferId) {
      const rows = await db`SELECT FROM buffers
        WHERE buffer_id = ${bufferId} AND deleted_at IS NULL AND ${reachable(db, scope)}`
      return rows.length > 0
    },
    async find(dlqId) {
      const [row] = await db<ItemRow[]>`SELECT ${columns(db)} FROM dlq_items WHERE dlq_id = ${dlqId}`
      return row && itemOf(row)
    },
    body: (dlqId) => bodies.read(dlqId),
    async remove(dlqId) {
      // Triggers leave the tombstone and remove what was uploaded of the body, in the same transaction.
      const removed = await db`DELETE FROM dlq_items WHERE dlq_id = ${dlqId} RETURNING dlq_id`
      return removed.length > 0
    },
  }
}

/** JSON of the message ids of a page, bytes: once it has so many, it ends. */
export const PAGE_BYTES = 4_000_000
/** Of a page: those of few items are one. */
const MOST_PORTIONS = 16
/**
 * What a row takes in a page, bytes: an item its longest id, where it is plain text, and the rest its other columns. So 500
 * rows of one item each are read in one portion.
 */
const ID_BYTES = 515
const REST_BYTES = 7_000

interface Portion {
  rows: (ItemRow & { bytes: number })[]
  /** There is nothing behind them that the filter names. */
  isLast: boolean
}

/**
 * Ten thousand ids may be 5 MB, and their number alone is known before they are read. So a page is read in portions that
 * are no larger than a page by the number of their ids. Ids of control characters are up to six times as large in JSON.
 */
async function listItems(db: Database, scope: Scope, filter: DeadLetterFilter): Promise<ItemRow[]> {
  const rows: ItemRow[] = []
  let { after } = filter
  let bytes = 0
  for (let portions = 0; portions < MOST_PORTIONS && bytes < PAGE_BYTES; portions++) {
    const left = { ...filter, after, limit: filter.limit - rows.length }
    const portion = await readPortion(db, scope, left, PAGE_BYTES - bytes)
    rows.push(...portion.rows)
    const last = rows.at(-1)
    if (portion.isLast || last === undefined) break
    for (const row of portion.rows) bytes += row.bytes
    after = { createdAt: last.created_at, dlqId: last.dlq_id }
  }
  return rows
}

/** The newest ones that take `bytes` at most together, and one in any case. */
async function readPortion(
  db: Database,
  scope: Scope,
  filter: DeadLetterFilter,
  bytes: number,
): Promise<Portion> {
  const rows = await db<(ItemRow & { bytes: number; found: number })[]>`
    SELECT *, octet_length(message_ids::text) AS bytes FROM (
      SELECT i.*, count(*) OVER ()::int AS found, row_number() OVER newest AS nth,
        sum(${ID_BYTES} * item_count::bigint + ${REST_BYTES}) OVER newest AS upto
      FROM (${newestOf(db, scope, filter)}) AS i
      WINDOW newest AS (ORDER BY created_at DESC, dlq_id DESC ROWS UNBOUNDED PRECEDING)
    ) AS n WHERE upto <= ${bytes} OR nth = 1 ORDER BY nth`
  return { rows, isLast: rows.length === (rows[0]?.found ?? 0) }
}

/** Each form walks one index from its newest entry; a project-scoped list reads at most `limit` rows a project. */
function newestOf(db: Database, scope: Scope, { bufferId, limit, after }: DeadLetterFilter) {
  const newest = db`ORDER BY created_at DESC, dlq_id DESC LIMIT ${limit}`
  const behind =
    after === undefined ? db`` : db`AND (created_at, dlq_id) < (${after.createdAt}::bigint, ${after.dlqId})`
  if (bufferId !== undefined || scope.projectIds === null) {
    const ofBuffer = bufferId === undefined ? db`` : db`AND buffer_id = ${bufferId}`
    return db`SELECT ${columns(db)} FROM dlq_items WHERE ${reachable(db, scope)} ${ofBuffer} ${behind} ${newest}`
  }
  const projectIds = [...new Set(scope.projectIds)]
  return db`
    SELECT i.* FROM unnest(${projectIds}::text[]) AS p (id) CROSS JOIN LATERAL (
      SELECT ${columns(db)} FROM dlq_items
      WHERE customer_id = ${scope.customerId} AND project_id = p.id ${behind} ${newest}) AS i
    ${newest}`
}

/** Everything but the body, which can be large. */
function columns(db: Database) {
  return db`dlq_id, customer_id, project_id, buffer_id, group_id, version, group_key, message_ids,
    first_payload_preview, reason, last_error, last_status_code, last_response, attempt, item_count, segment,
    first_item_at, last_activity_at, payload_bytes, body IS NOT NULL OR body_id IS NOT NULL AS payload_stored, retry_count,
    last_retry_at, created_at`
}

function itemOf(row: ItemRow): DlqItem {
  return {
    dlqId: row.dlq_id,
    customerId: row.customer_id,
    projectId: row.project_id,
    bufferId: row.buffer_id,
    groupId: row.group_id,
    groupKey: row.group_key,
    reason: row.reason,
    lastError: row.last_error,
    lastStatusCode: row.last_status_code,
    ...(row.last_response !== null && { lastResponse: row.last_response }),
    attempt: row.attempt,
    itemCount: row.item_count,
    payloadSummary: { messageIds: row.message_ids, firstPayloadPreview: row.first_payload_preview },
    payloadStored: row.payload_stored,
    batch: {
      groupHash: row.group_id,
      segment: row.segment,
      firstItemAt: row.first_item_at,
      lastActivityAt: row.last_activity_at,
      groupVersion: row.version,
      payloadBytes: row.payload_bytes,
    },
    retryCount: row.retry_count,
    lastRetryAt: row.last_retry_at,
    createdAt: row.created_at,
  }
}
