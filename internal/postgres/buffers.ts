/** Buffers (docs/reference/buffers.md, "Fields"): one SQL operation a function. Secrets go in and out encrypted. */

import { isDeepStrictEqual } from 'node:util'
import type { BufferRows, BufferStore, NewBuffer } from '../buffers/ports.ts'
import { configOf } from '../domain/buffer.ts'
import type { Buffer, BufferConfig, BufferRecord } from '../domain/model.ts'
import type { Scope } from '../domain/principal.ts'
import { mapInTurns } from '../runtime/turns.ts'
import { refusingWhenAway } from './availability.ts'
import { copyBuffer } from './buffer-copies.ts'
import { type BufferRow, insertRow, recordOf, storedConfig } from './buffer-rows.ts'
import { type Caps, NO_CAPS, type OverCap, overBuffers } from './caps.ts'
import type { Database, Queryable } from './connection.ts'
import { removedBuffers } from './removed-buffers.ts'
import { reachable } from './scope.ts'
import type { SecretBox } from './secrets.ts'

/** Of a list in one turn of the event loop: each may have 51 secrets to open. */
const BUFFERS_A_TURN = 10

export function createBufferStore(
  db: Database,
  box: SecretBox,
  caps: Pick<Caps, 'buffers'> = NO_CAPS,
): BufferStore {
  return refusingWhenAway<BufferStore>({
    insert: (buffer) => insertBuffer(db, box, caps.buffers, buffer),
    list: (scope, projectId) => listBuffers(db, box, scope, projectId),
    async find(scope, bufferId) {
      const row = await findBuffer(db, scope, bufferId)
      return row && recordOf(box, row)
    },
    copy: (scope, bufferId, make) => copyBuffer(db, box, caps.buffers, scope, bufferId, make),
    update: (scope, bufferId, change) => updateBuffer(db, box, scope, bufferId, change),
    softDelete: (scope, bufferId) => deleteBuffer(db, box, scope, bufferId),
  })
}

/** `onUnreadable`: a record was read of which a secret cannot be opened. */
export function createBufferRows(
  db: Database,
  box: SecretBox,
  onUnreadable: (record: BufferRecord) => void = () => {},
): BufferRows {
  function read(row: BufferRow): BufferRecord | Error {
    const record = recordOrError(box, row)
    if (!(record instanceof Error) && record.unreadable) onUnreadable(record)
    return record
  }

  return refusingWhenAway<BufferRows>({
    async byUids(uids) {
      const rows = await db<BufferRow[]>`SELECT * FROM buffers WHERE uid = ANY (${[...uids]}::uuid[])`
      const records = new Map(rows.map((row) => [row.uid, read(row)]))
      const missing = uids.filter((uid) => !records.has(uid))
      for (const record of await removedBuffers(db, missing)) records.set(record.uid, record)
      return records
    },
    async byIds(bufferIds) {
      const rows = await db<BufferRow[]>`
        SELECT * FROM buffers WHERE buffer_id = ANY (${[...bufferIds]}::text[]) AND deleted_at IS NULL`
      return new Map(rows.map((row) => [row.buffer_id, read(row)]))
    },
  })
}

function insertBuffer(
  db: Database,
  box: SecretBox,
  most: number,
  buffer: NewBuffer,
): Promise<BufferRecord | 'no-project' | 'exists' | OverCap> {
  return db.begin(async (transaction) => {
    // Held until the commit: the project cannot be deleted under the new buffer.
    const [project] = await transaction`
      SELECT 1 FROM projects
      WHERE project_id = ${buffer.projectId} AND customer_id = ${buffer.customerId} FOR KEY SHARE`
    if (project === undefined) return 'no-project'
    const over = await overBuffers(transaction, most, buffer)
    if (over !== null) return over
    const row = await insertRow(transaction, box, buffer)
    return row ? recordOf(box, row) : 'exists'
  })
}

async function listBuffers(
  db: Database,
  box: SecretBox,
  scope: Scope,
  projectId: string | undefined,
): Promise<Buffer[]> {
  const rows =
    projectId === undefined && scope.projectIds === null
      ? await listOfCustomer(db, scope.customerId)
      : await listOfProjects(db, scope.customerId, projectsOf(scope, projectId))
  return mapInTurns(rows, (row) => recordOf(box, row).buffer, BUFFERS_A_TURN)
}

/** Those that both the scope and the filter name; one of them names some. */
function projectsOf({ projectIds }: Scope, projectId: string | undefined): string[] {
  if (projectId === undefined) return [...new Set(projectIds)]
  return projectIds === null || projectIds.includes(projectId) ? [projectId] : []
}

function listOfCustomer(db: Database, customerId: string): Promise<BufferRow[]> {
  return db<BufferRow[]>`
    SELECT * FROM buffers WHERE deleted_at IS NULL AND customer_id = ${customerId}
    ORDER BY created_at DESC, buffer_id`
}

/**
 * Project by project, and the order inside keeps it so: given all of them at once, the plan for any values reads
 * whatever the customer has.
 */
function listOfProjects(db: Database, customerId: string, projectIds: string[]): Promise<BufferRow[]> {
  const order = db`ORDER BY created_at DESC, buffer_id`
  return db<BufferRow[]>`
    SELECT b.* FROM unnest(${projectIds}::text[]) AS p (id) CROSS JOIN LATERAL (
      SELECT * FROM buffers
      WHERE deleted_at IS NULL AND customer_id = ${customerId} AND project_id = p.id ${order}) AS b
    ${order}`
}

async function findBuffer(db: Queryable, scope: Scope, bufferId: string): Promise<BufferRow | undefined> {
  const [row] = await db<BufferRow[]>`
    SELECT * FROM buffers
    WHERE buffer_id = ${bufferId} AND deleted_at IS NULL AND ${reachable(db, scope)}`
  return row
}

/**
 * Reads, then writes upon what was read: two questions and no transaction, which would hold a connection and the
 * feed's lock for as long as this process is busy elsewhere. Whoever finds that another change came first begins
 * anew, upon its result; each round that is lost was won by another.
 */
async function updateBuffer(
  db: Database,
  box: SecretBox,
  scope: Scope,
  bufferId: string,
  change: (stored: Buffer) => BufferConfig,
): Promise<BufferRecord | undefined> {
  for (;;) {
    const row = await findBuffer(db, scope, bufferId)
    if (row === undefined) return undefined
    const stored = recordOf(box, row)
    const config = change(stored.buffer)
    // Encryption never gives the same text twice: without this a change of nothing would look like one.
    if (isDeepStrictEqual(config, configOf(stored.buffer))) return stored
    const written = await writeConfig(db, box, row, config)
    if (written !== undefined) return recordOf(box, written)
  }
}

/** undefined: the buffer was changed or deleted since `row` was read. The version counts every change of it. */
async function writeConfig(
  db: Database,
  box: SecretBox,
  { uid, version, config: before }: BufferRow,
  config: BufferConfig,
): Promise<BufferRow | undefined> {
  const [row] = await db<BufferRow[]>`
    UPDATE buffers SET
      config = ${storedConfig(db, box, uid, config, before)},
      enabled = ${config.enabled},
      consecutive_dlq_count = CASE WHEN ${config.enabled} AND NOT enabled THEN 0 ELSE consecutive_dlq_count END
    WHERE uid = ${uid} AND version = ${version} AND deleted_at IS NULL RETURNING *`
  return row
}

async function deleteBuffer(
  db: Database,
  box: SecretBox,
  scope: Scope,
  bufferId: string,
): Promise<BufferRecord | undefined> {
  const [row] = await db<BufferRow[]>`
    UPDATE buffers SET
      deleted_at = clock_timestamp(),
      deleted_state = CASE WHEN enabled THEN 'enabled' ELSE 'disabled' END
    WHERE buffer_id = ${bufferId} AND deleted_at IS NULL AND ${reachable(db, scope)} RETURNING *`
  return row && recordOf(box, row)
}

/** One row that cannot be opened must not take the others of its statement with it. */
function recordOrError(box: SecretBox, row: BufferRow): BufferRecord | Error {
  try {
    return recordOf(box, row)
  } catch (cause) {
    return new Error(`buffer ${row.uid} cannot be read`, { cause })
  }
}
