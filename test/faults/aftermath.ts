/** What stands in Postgres and in the journals when the service has ended. */
import { join } from 'node:path'

import { startPostgres } from '../../internal/embedded/postgres-server.ts'
import { createBroker } from '../../internal/nats/broker.ts'
import { connectBroker } from '../../internal/nats/connection.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { closeNodes } from '../../internal/postgres/settlement.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { decodeCommit } from '../../internal/shard/codec.ts'
import { type DeadLetter, readBatch, type StoredCommit } from './history.ts'
import type { Trial } from './trial.ts'

const SHARDS = 2
const silent = { info: () => {}, warn: () => {}, error: () => {} }

/** Completes the history of a trial; what dead nodes had not settled is refunded first, as the living do. */
export async function readAftermath(trial: Trial, granted: number): Promise<void> {
  const { history, own, installation } = trial
  const embedded = own
    ? null
    : await startPostgres({ dir: join(installation.dataDir, 'postgres'), log: silent })
  const db = connect(own?.databaseUrl ?? embedded!.url, { max: 1 })
  try {
    await closeNodes(db, [], 0)
    history.dead = await readDead(db)
    const [row] = await db<{ left: number }[]>`SELECT sum(credits)::bigint AS left FROM customers`
    history.credits = { granted, left: Number(row?.left) }
  } finally {
    await db.end()
    await embedded?.stop()
  }
  if (own) history.commits = await readJournals(own.nats.url)
}

export async function readDead(db: Database): Promise<DeadLetter[]> {
  const rows = await db<{ group_id: string; version: number; body: Uint8Array; created_at: number }[]>`
    SELECT group_id, version, body, created_at FROM dlq_items`
  return rows.map(({ group_id, version, body, created_at }) => ({
    ...readBatch(`grp:${group_id}:v${version}`, body),
    createdAt: Number(created_at),
  }))
}

async function readJournals(natsUrl: string): Promise<StoredCommit[]> {
  const ignore = { connection: () => {}, warning: () => {} }
  const connection = await connectBroker({ servers: [natsUrl] }, 1, ignore)
  const broker = createBroker(connection, { clock: systemClock() })
  const commits: StoredCommit[] = []
  try {
    for (let shard = 0; shard < SHARDS; shard++) {
      const journal = broker.journal(shard)
      const { firstSeq, lastSeq } = await journal.state()
      for await (const { seq, data } of journal.range(firstSeq, lastSeq)) {
        const { boot, epoch, records } = decodeCommit(data)
        commits.push({ shard, seq, boot, epoch, records: records.map(({ type }) => type) })
      }
    }
  } finally {
    broker.close()
    await connection.close()
  }
  return commits
}
