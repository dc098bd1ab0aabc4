/** What Postgres remembers of the shards, for a repair (see `internal/shard/repair`). */
import type { BatchName } from '../shard/journal/batch-name.ts'
import type { Remembered } from '../shard/repair/ports.ts'
import { askByName, named } from './batch-names.ts'
import type { Database } from './connection.ts'
import { remembered } from './shards.ts'

export function createRemembered(db: Database): Remembered {
  return {
    known: (shard) => remembered(db, shard),
    dead: (batches) =>
      askByName(batches, async (some) => [
        ...(await db<BatchName[]>`
          WITH named AS (SELECT * FROM ${named(db, some)} AS n (group_id, version))
          SELECT group_id AS "groupId", version FROM dlq_items JOIN named USING (group_id, version)
          UNION
          SELECT group_id, version FROM dlq_tombstones JOIN named USING (group_id, version)`),
      ]),
  }
}
