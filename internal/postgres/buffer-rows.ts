/** Rows of buffers as they are read and written: secrets encrypted, `enabled` beside the rest of the configuration. */

import type { NewBuffer } from '../buffers/ports.ts'
import { mapSecrets } from '../domain/buffer-secrets.ts'
import type { Buffer, BufferConfig, BufferRecord } from '../domain/model.ts'
import type { Scope } from '../domain/principal.ts'
import type { Queryable, Transaction } from './connection.ts'
import { reachable } from './scope.ts'
import type { SecretBox } from './secrets.ts'

type StoredConfig = Omit<BufferConfig, 'enabled'>

export interface BufferRow {
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

export function storedConfig(db: Queryable, box: SecretBox, uid: string, config: BufferConfig) {
  const { enabled: _, ...stored } = mapSecrets(config, (value, path) => box.seal(value, [uid, ...path]))
  return db.json(stored as never)
}

export function recordOf(box: SecretBox, row: BufferRow): BufferRecord {
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

/** undefined: the id is taken, or another customer once had it (migration 038). */
export async function insertRow(
  transaction: Transaction,
  box: SecretBox,
  { uid, bufferId, customerId, projectId, config }: NewBuffer,
): Promise<BufferRow | undefined> {
  const [row] = await transaction<BufferRow[]>`
    INSERT INTO buffers (uid, buffer_id, customer_id, project_id, config, enabled)
    VALUES (${uid}, ${bufferId}, ${customerId}, ${projectId},
      ${storedConfig(transaction, box, uid, config)}, ${config.enabled})
    ON CONFLICT (buffer_id) WHERE deleted_at IS NULL DO NOTHING RETURNING *`
  return row
}

/** The row under a lock: whoever comes later sees what became of it. */
export async function lockBuffer(
  transaction: Transaction,
  scope: Scope,
  bufferId: string,
): Promise<BufferRow | undefined> {
  const [row] = await transaction<BufferRow[]>`
    SELECT * FROM buffers
    WHERE buffer_id = ${bufferId} AND deleted_at IS NULL AND ${reachable(transaction, scope)}
    FOR NO KEY UPDATE`
  return row
}
