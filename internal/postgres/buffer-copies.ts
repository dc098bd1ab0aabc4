/** Copies of buffers (clone: docs/reference/api.md, "Buffers"). */

import type { BufferCopy } from '../buffers/ports.ts'
import type { Buffer, BufferRecord } from '../domain/model.ts'
import type { Scope } from '../domain/principal.ts'
import { insertRow, lockBuffer, recordOf } from './buffer-rows.ts'
import { type OverCap, overBuffers } from './caps.ts'
import type { Database, Transaction } from './connection.ts'
import type { SecretBox } from './secrets.ts'

/** Ids looked up at once. */
const PAGE = 100

/** See `BufferStore.copy`. The lock of the original also keeps its project from being deleted. */
export function copyBuffer(
  db: Database,
  box: SecretBox,
  most: number,
  scope: Scope,
  bufferId: string,
  make: (stored: Buffer) => BufferCopy,
): Promise<BufferRecord | 'no-id' | 'unreadable' | OverCap | undefined> {
  return db.begin(async (transaction) => {
    const original = await lockBuffer(transaction, scope, bufferId)
    if (original === undefined) return undefined
    const { buffer: stored, unreadable } = recordOf(box, original)
    // A sealed secret is bound to its row.
    if (unreadable) return 'unreadable'
    const { customerId, projectId } = stored
    const { uid, config, ids } = make(stored)
    for await (const free of freeIds(transaction, customerId, ids)) {
      const over = await overBuffers(transaction, most, { customerId, bufferId: free })
      if (over !== null) return over
      // Somebody else may create a buffer of this very id meanwhile: then it is the next one's turn.
      const row = await insertRow(transaction, box, { uid, bufferId: free, customerId, projectId, config })
      if (row) return recordOf(box, row)
    }
    return 'no-id'
  })
}

/** Those that no buffer has, and no other customer once had. */
async function* freeIds(
  transaction: Transaction,
  customerId: string,
  ids: readonly string[],
): AsyncGenerator<string> {
  for (let from = 0; from < ids.length; from += PAGE) {
    const page = ids.slice(from, from + PAGE)
    const rows = await transaction<{ id: string }[]>`
      SELECT buffer_id AS id FROM buffers WHERE buffer_id = ANY (${page}::text[]) AND deleted_at IS NULL
      UNION ALL SELECT id FROM taken_ids
        WHERE kind = 'buffer' AND id = ANY (${page}::text[]) AND customer_id <> ${customerId}`
    const taken = new Set(rows.map(({ id }) => id))
    yield* page.filter((id) => !taken.has(id))
  }
}
