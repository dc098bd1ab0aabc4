/** Buffers (specification, "Buffer"): one SQL operation a function. Secrets go in and out encrypted. */

import { isDeepStrictEqual } from 'node:util'
import type { BufferRows, BufferStore, NewBuffer } from '../buffers/ports.ts'
import { configOf } from '../domain/buffer.ts'
import { mapSecrets } from '../domain/buffer-secrets.ts'
import type { Buffer, BufferConfig, BufferRecord } from '../domain/model.ts'
import type { Scope } from '../domain/principal.ts'
import { refusingWhenAway } from './availability.ts'
import type { Database, Queryable, Transaction } from './connection.ts'
import { reachable } from './scope.ts'
import type { SecretBox } from './secrets.ts'

type StoredConfig = Omit<BufferConfig, 'enabled'>

interface BufferRow {
  uid: string
  buffer_id: string
  customer_id: string
  project_id: string
  config: StoredConfig
  enabled: boolean
  consecutive_dlq_count: number
  version: number
  deleted_state: 'enabled' | 'disabled' | null
  created_at: Date
  updated_at: Date
}

export function createBufferStore(db: Database, box: SecretBox): BufferStore {
  return refusingWhenAway<BufferStore>({
    insert: (buffer) => insertBuffer(db, box, buffer),
    list: (scope, projectId) => listBuffers(db, box, scope, projectId),
    async find(scope, bufferId) {
      const row = await findBuffer(db, scope, bufferId)
      return row && recordOf(box, row)
    },
    update: (scope, bufferId, change) => updateBuffer(db, box, scope, bufferId, change),
    softDelete: (scope, bufferId) => deleteBuffer(db, box, scope, bufferId),
  })
}

export function createBufferRows(db: Database, box: SecretBox): BufferRows {
  return refusingWhenAway<BufferRows>({
    async byUids(uids) {
      const rows = await db<BufferRow[]>`SELECT * FROM buffers WHERE uid = ANY (${[...uids]}::uuid[])`
      return new Map(rows.map((row) => [row.uid, recordOrError(box, row)]))
    },
    async byIds(bufferIds) {
      const rows = await db<BufferRow[]>`
        SELECT * FROM buffers WHERE buffer_id = ANY (${[...bufferIds]}::text[]) AND deleted_at IS NULL`
      return new Map(rows.map((row) => [row.buffer_id, recordOrError(box, row)]))
    },
  })
}

function insertBuffer(
  db: Database,
  box: SecretBox,
  buffer: NewBuffer,
): Promise<BufferRecord | 'no-project' | 'exists'> {
  return db.begin(async (transaction) => {
    // Held until the commit: the project cannot be deleted under the new buffer.
    const [project] = await transaction`
      SELECT 1 FROM projects
      WHERE project_id = ${buffer.projectId} AND customer_id = ${buffer.customerId} FOR KEY SHARE`
    if (project === undefined) return 'no-project'
    const [row] = await transaction<BufferRow[]>`
      INSERT INTO buffers (uid, buffer_id, customer_id, project_id, config, enabled)
      VALUES (${buffer.uid}, ${buffer.bufferId}, ${buffer.customerId}, ${buffer.projectId},
        ${storedConfig(transaction, box, buffer.uid, buffer.config)}, ${buffer.config.enabled})
      ON CONFLICT (buffer_id) WHERE deleted_at IS NULL DO NOTHING RETURNING *`
    return row ? recordOf(box, row) : 'exists'
  })
}

async function listBuffers(
  db: Database,
  box: SecretBox,
  scope: Scope,
  projectId: string | undefined,
): Promise<Buffer[]> {
  const rows = await db<BufferRow[]>`
    SELECT * FROM buffers
    WHERE deleted_at IS NULL AND ${reachable(db, scope)}
      AND (${projectId ?? null}::text IS NULL OR project_id = ${projectId ?? null})
    ORDER BY created_at DESC, buffer_id`
  return rows.map((row) => recordOf(box, row).buffer)
}

async function findBuffer(db: Queryable, scope: Scope, bufferId: string): Promise<BufferRow | undefined> {
  const [row] = await db<BufferRow[]>`
    SELECT * FROM buffers
    WHERE buffer_id = ${bufferId} AND deleted_at IS NULL AND ${reachable(db, scope)}`
  return row
}

function updateBuffer(
  db: Database,
  box: SecretBox,
  scope: Scope,
  bufferId: string,
  change: (stored: Buffer) => BufferConfig,
): Promise<BufferRecord | undefined> {
  return db.begin(async (transaction) => {
    // Two changes that arrive together are made one after the other, each upon the other's result.
    const [row] = await transaction<BufferRow[]>`
      SELECT * FROM buffers
      WHERE buffer_id = ${bufferId} AND deleted_at IS NULL AND ${reachable(transaction, scope)}
      FOR NO KEY UPDATE`
    if (row === undefined) return undefined
    const stored = recordOf(box, row)
    const config = change(stored.buffer)
    // Encryption never gives the same text twice: without this a change of nothing would look like one.
    if (isDeepStrictEqual(config, configOf(stored.buffer))) return stored
    return recordOf(box, await writeConfig(transaction, box, row.uid, config))
  })
}

async function writeConfig(
  transaction: Transaction,
  box: SecretBox,
  uid: string,
  config: BufferConfig,
): Promise<BufferRow> {
  const [row] = await transaction<BufferRow[]>`
    UPDATE buffers SET
      config = ${storedConfig(transaction, box, uid, config)},
      enabled = ${config.enabled},
      consecutive_dlq_count = CASE WHEN ${config.enabled} AND NOT enabled THEN 0 ELSE consecutive_dlq_count END
    WHERE uid = ${uid} RETURNING *`
  if (row === undefined) throw new Error(`buffer ${uid} vanished under its lock`)
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

function storedConfig(db: Queryable, box: SecretBox, uid: string, config: BufferConfig) {
  const { enabled: _, ...stored } = mapSecrets(config, (value, path) => box.seal(value, [uid, ...path]))
  return db.json(stored as never)
}

function recordOf(box: SecretBox, row: BufferRow): BufferRecord {
  const enabled = row.deleted_state === null ? row.enabled : row.deleted_state === 'enabled'
  const config: BufferConfig = { ...row.config, enabled }
  const opened = mapSecrets(config, (value, path) => box.open(value, [row.uid, ...path]))
  const buffer: Buffer = {
    bufferId: row.buffer_id,
    customerId: row.customer_id,
    projectId: row.project_id,
    ...opened,
    consecutiveDlqCount: row.consecutive_dlq_count,
    createdAt: row.created_at.getTime(),
    updatedAt: row.updated_at.getTime(),
  }
  return { uid: row.uid, version: row.version, deleted: row.deleted_state !== null, buffer }
}

/** One row that cannot be opened must not take the others of its statement with it. */
function recordOrError(box: SecretBox, row: BufferRow): BufferRecord | Error {
  try {
    return recordOf(box, row)
  } catch (cause) {
    return new Error(`buffer ${row.uid} cannot be read`, { cause })
  }
}
