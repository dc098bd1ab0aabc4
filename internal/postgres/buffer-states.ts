/** What changes about buffers without their owner: one statement, dead letters counted by the index of each buffer's. */
import type { BufferState, StateMark, StateStore } from '../buffers/states.ts'
import type { PauseReason } from '../domain/model.ts'
import { refusingWhenAway } from './availability.ts'
import type { Database } from './connection.ts'
import { reachable } from './scope.ts'

interface MarkRow {
  uid: string
  enabled: boolean
  paused_at: Date | null
  updated_at: Date
}

interface StateRow extends MarkRow {
  buffer_id: string
  project_id: string
  paused_reason: PauseReason | null
  consecutive_dlq_count: number
  dead_letters: number
  last_dead_letter_at: number | null
}

export function createStateStore(db: Database): StateStore {
  return refusingWhenAway<StateStore>({
    async marks(scope) {
      const rows = await db<MarkRow[]>`
        SELECT uid, enabled, paused_at, updated_at FROM buffers
        WHERE deleted_at IS NULL AND ${reachable(db, scope)} ORDER BY buffer_id`
      return rows.map(markOf)
    },
    async states(scope, mostCounted) {
      const rows = await db<StateRow[]>`
        SELECT uid, b.buffer_id, project_id, enabled, paused_reason, paused_at, consecutive_dlq_count, updated_at,
          d.dead_letters, d.last_dead_letter_at
        FROM (SELECT * FROM buffers WHERE deleted_at IS NULL AND ${reachable(db, scope)}) AS b
        CROSS JOIN LATERAL (
          SELECT count(*) AS dead_letters, max(created_at) AS last_dead_letter_at
          FROM (
            SELECT created_at FROM dlq_items i
            WHERE i.customer_id = b.customer_id AND i.buffer_id = b.buffer_id
            ORDER BY created_at DESC, dlq_id DESC LIMIT ${mostCounted}) AS newest) AS d
        ORDER BY b.buffer_id`
      return rows.map(stateOf)
    },
  })
}

/** Customers of the buffers with these uids, deleted ones too. */
export async function customersOfBuffers(db: Database, uids: readonly string[]): Promise<string[]> {
  const rows = await db<{ customer_id: string }[]>`
    SELECT DISTINCT customer_id FROM buffers WHERE uid = ANY (${[...uids]}::uuid[])`
  return rows.map(({ customer_id }) => customer_id)
}

function markOf({ uid, enabled, paused_at, updated_at }: MarkRow): StateMark {
  const pause = paused_at === null ? {} : { pausedAt: paused_at.getTime() }
  return { uid, enabled, ...pause, updatedAt: updated_at.getTime() }
}

function stateOf(row: StateRow): BufferState & StateMark {
  return {
    ...markOf(row),
    bufferId: row.buffer_id,
    projectId: row.project_id,
    ...(row.paused_reason !== null && { pausedReason: row.paused_reason }),
    consecutiveDlqCount: row.consecutive_dlq_count,
    deadLetters: row.dead_letters,
    ...(row.last_dead_letter_at !== null && { lastDeadLetterAt: row.last_dead_letter_at }),
  }
}
