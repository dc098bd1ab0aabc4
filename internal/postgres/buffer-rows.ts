/** Rows of buffers as they are read and written: secrets encrypted, `enabled` beside the rest of the configuration. */

import type { NewBuffer } from '../buffers/ports.ts'
import { mapSecrets, secretAt, UNREADABLE } from '../domain/buffer-secrets.ts'
import type { Buffer, BufferConfig, BufferRecord, PauseReason, Unreadable } from '../domain/model.ts'
import type { Scope } from '../domain/principal.ts'
import type { Queryable, Transaction } from './connection.ts'
import { reachable } from './scope.ts'
import { type SecretBox, SecretError } from './secrets.ts'

type StoredConfig = Omit<BufferConfig, 'enabled'>

export interface BufferRow {
  uid: string
  buffer_id: string
  customer_id: string
  project_id: string
  config: StoredConfig
  enabled: boolean
  suspended: boolean
  consecutive_dlq_count: number
  paused_at: Date | null
  paused_reason: PauseReason | null
  version: number
  deleted_state: 'enabled' | 'disabled' | null
  created_at: Date
  updated_at: Date
}

/** `before`: what is stored now. Of it a secret that could not be opened is kept as it is. */
export function storedConfig(
  db: Queryable,
  box: SecretBox,
  uid: string,
  config: BufferConfig,
  before?: StoredConfig,
) {
  const { enabled: _, ...stored } = mapSecrets(config, (value, path) => {
    const kept = value === UNREADABLE && before !== undefined ? secretAt(before, path) : undefined
    return kept ?? box.seal(value, [uid, ...path])
  })
  return db.json(stored as never)
}

/** A secret that cannot be opened costs no more than itself: `UNREADABLE` stands in its place. */
export function recordOf(box: SecretBox, row: BufferRow): BufferRecord {
  const enabled = row.deleted_state === null ? row.enabled : row.deleted_state === 'enabled'
  const config: BufferConfig = { ...row.config, enabled }
  const { opened, unreadable } = open(box, row.uid, config)
  const buffer: Buffer = {
    bufferId: row.buffer_id,
    customerId: row.customer_id,
    projectId: row.project_id,
    ...opened,
    consecutiveDlqCount: row.consecutive_dlq_count,
    ...pauseOf(row),
    createdAt: row.created_at.getTime(),
    updatedAt: row.updated_at.getTime(),
  }
  const { uid, version, suspended } = row
  const deleted = row.deleted_state !== null
  return { uid, version, deleted, suspended, ...(unreadable && { unreadable }), buffer }
}

function pauseOf({ paused_at, paused_reason }: BufferRow): Pick<Buffer, 'pausedReason' | 'pausedAt'> {
  if (paused_at === null || paused_reason === null) return {}
  return { pausedReason: paused_reason, pausedAt: paused_at.getTime() }
}

function open(
  box: SecretBox,
  uid: string,
  config: BufferConfig,
): { opened: BufferConfig; unreadable: Unreadable | undefined } {
  let unreadable: Unreadable | undefined
  const opened = mapSecrets(config, (value, path) => {
    try {
      return box.open(value, [uid, ...path])
    } catch (error) {
      if (!(error instanceof SecretError)) throw error
      const { source = false, delivery = false, why = error.message } = unreadable ?? {}
      const isSource = path[0] === 'sourceVerification'
      unreadable = { source: source || isSource, delivery: delivery || !isSource, why }
      return UNREADABLE
    }
  })
  return { opened, unreadable }
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
