/** What stands in Postgres when the service has ended. */
import { join } from 'node:path'

import { startPostgres } from '../../internal/embedded/postgres-server.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createDeadLetterStore } from '../../internal/postgres/dlq-items.ts'
import { closeNodes } from '../../internal/postgres/settlement.ts'
import { silent } from '../support/servers.ts'
import { readBatch } from './batch-body.ts'
import type { Accounts, DeadLetter, History } from './history.ts'

/** Completes the history from the database that a service left behind in its data folder. */
export async function readLeftDatabase(history: History, dataDir: string, granted: number): Promise<void> {
  const embedded = await startPostgres({ dir: join(dataDir, 'postgres'), log: silent })
  try {
    await readDatabase(history, embedded.url, granted)
  } finally {
    await embedded.stop()
  }
}

/** Dead letters and accounts; what dead nodes had not settled is refunded first, as the living do. */
export async function readDatabase(history: History, databaseUrl: string, granted: number): Promise<void> {
  const db = connect(databaseUrl, { max: 1 })
  try {
    await closeNodes(db, () => true, 0)
    history.dead = await readDead(db)
    history.credits = await readAccounts(db, granted)
  } finally {
    await db.end()
  }
}

async function readAccounts(db: Database, granted: number): Promise<Accounts> {
  const [balance] = await db<{ left: number }[]>`SELECT sum(credits)::bigint AS left FROM customers`
  const booked = await db<{ buffer_id: string; credits: number }[]>`
    SELECT b.buffer_id, -sum(t.amount)::bigint AS credits
    FROM credit_transactions t JOIN buffers b ON b.uid = t.buffer_uid GROUP BY 1`
  const [refunds] = await db<{ credits: number }[]>`
    SELECT coalesce(sum(amount), 0)::bigint AS credits
    FROM credit_transactions WHERE type = 'refund' AND buffer_uid IS NULL`
  return {
    granted,
    left: Number(balance?.left),
    booked: Object.fromEntries(booked.map(({ buffer_id, credits }) => [buffer_id, Number(credits)])),
    refunded: Number(refunds?.credits),
  }
}

export async function readDead(db: Database): Promise<DeadLetter[]> {
  const store = createDeadLetterStore(db)
  const rows = await db<{ dlq_id: string; group_id: string; version: number; created_at: number }[]>`
    SELECT dlq_id, group_id, version, created_at FROM dlq_items`
  const dead: DeadLetter[] = []
  for (const { dlq_id, group_id, version, created_at } of rows) {
    const body = await store.body(dlq_id)
    if (!body) throw new Error(`the body of the dead letter ${dlq_id} is not there`)
    dead.push({ ...readBatch(`grp:${group_id}:v${version}`, body), createdAt: Number(created_at) })
  }
  return dead
}
