/** What stands in Postgres when the service has ended. */
import { join } from 'node:path'

import { startPostgres } from '../../internal/embedded/postgres-server.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { closeNodes } from '../../internal/postgres/settlement.ts'
import { silent } from '../support/servers.ts'
import { type DeadLetter, type History, readBatch } from './history.ts'

/** Completes the history from the database that a service left behind in its data folder. */
export async function readLeftDatabase(history: History, dataDir: string, granted: number): Promise<void> {
  const embedded = await startPostgres({ dir: join(dataDir, 'postgres'), log: silent })
  try {
    await readDatabase(history, embedded.url, granted)
  } finally {
    await embedded.stop()
  }
}

/** Dead letters and balance; what dead nodes had not settled is refunded first, as the living do. */
export async function readDatabase(history: History, databaseUrl: string, granted: number): Promise<void> {
  const db = connect(databaseUrl, { max: 1 })
  try {
    await closeNodes(db, () => true, 0)
    history.dead = await readDead(db)
    const [row] = await db<{ left: number }[]>`SELECT sum(credits)::bigint AS left FROM customers`
    history.credits = { granted, left: Number(row?.left) }
  } finally {
    await db.end()
  }
}

export async function readDead(db: Database): Promise<DeadLetter[]> {
  const rows = await db<{ group_id: string; version: number; body: Uint8Array; created_at: number }[]>`
    SELECT group_id, version, body, created_at FROM dlq_items`
  return rows.map(({ group_id, version, body, created_at }) => ({
    ...readBatch(`grp:${group_id}:v${version}`, body),
    createdAt: Number(created_at),
  }))
}
