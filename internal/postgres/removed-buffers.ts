/**
 * Buffers whose rows were removed (docs/architecture/protocol.md, "Deleted buffers"). An item of one that was accepted
 * in spite of everything must not be lost: whose it was is known for as long as the buffer has figures, so the item
 * becomes a dead letter. Where to deliver it is not known any more.
 */

import { parseBufferCreate } from '../domain/buffer.ts'
import { required } from '../domain/errors.ts'
import type { BufferRecord } from '../domain/model.ts'
import type { Database } from './connection.ts'

interface Owner {
  uid: string
  customerId: string
  projectId: string
  bufferId: string
}

/** Those of `uids` that have no row any more and once had one. */
export async function removedBuffers(db: Database, uids: readonly string[]): Promise<BufferRecord[]> {
  if (uids.length === 0) return []
  const owners = await db<Owner[]>`
    SELECT buffer_uid AS uid, customer_id AS "customerId", project_id AS "projectId", buffer_id AS "bufferId"
    FROM buffer_owners o
    WHERE buffer_uid = ANY (${[...uids]}::uuid[]) AND NOT EXISTS (SELECT FROM buffers b WHERE b.uid = o.buffer_uid)`
  return owners.map(recordOf)
}

/** Nothing follows it, so no version of the row is newer. */
function recordOf({ uid, customerId, projectId, bufferId }: Owner): BufferRecord {
  const { config } = required(
    parseBufferCreate({
      bufferId,
      projectId,
      name: bufferId,
      groupKey: { mode: 'header', fallbackHeader: 'x-removed' },
      delivery: { url: 'https://removed.invalid' },
    }),
  )
  const buffer = {
    ...config,
    bufferId,
    customerId,
    projectId,
    consecutiveDlqCount: 0,
    createdAt: 0,
    updatedAt: 0,
  }
  return { uid, version: Number.MAX_SAFE_INTEGER, deleted: true, suspended: false, removed: true, buffer }
}
