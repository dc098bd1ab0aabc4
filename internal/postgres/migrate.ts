/**
 * Brings a database to the schema of this version: SQL files of `migrations/`, by number, each in one
 * transaction together with its mark in `schema_migrations`. An advisory lock makes starters that arrive
 * together wait for each other instead of racing.
 */

import { readdir, readFile } from 'node:fs/promises'
import { Umzug } from 'umzug'
import { connect, type Database } from './connection.ts'

/** Any fixed number; only migrations take it. */
const LOCK = 7_036_874_417

const FILE_NAME = /^\d{3}-[a-z0-9-]+\.sql$/

/** Applies what is missing. Rejects, with everything of the failed file undone, when one fails. */
export async function migrate(
  databaseUrl: string,
  folder: URL = new URL('./migrations/', import.meta.url),
): Promise<void> {
  // One connection: the session's lock, every transaction and the release go through the same one. Without
  // time limits: a large table may need its time, and waiting for another starter is the purpose.
  const db = connect(databaseUrl, {
    max: 1,
    name: 'penstock-migrate',
    statementTimeoutMs: 0,
    lockTimeoutMs: 0,
    idleInTransactionTimeoutMs: 0,
  })
  try {
    await db`SELECT pg_advisory_lock(${LOCK})`
    await applyMissing(db, folder)
  } finally {
    // Ends the session, and with it the lock.
    await db.end({ timeout: 5 })
  }
}

async function applyMissing(db: Database, folder: URL): Promise<void> {
  await db`CREATE TABLE IF NOT EXISTS schema_migrations (
    name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort()
  const misnamed = names.find((name) => !FILE_NAME.test(name))
  if (misnamed !== undefined) throw new Error(`migration ${misnamed}: the name must be NNN-name.sql`)
  const umzug = new Umzug({
    migrations: names.map((name) => ({ name, up: () => apply(db, name, new URL(name, folder)) })),
    storage: {
      executed: async () =>
        (await db`SELECT name FROM schema_migrations ORDER BY name`).map((row) => row.name),
      // The mark is part of the migration's own transaction.
      logMigration: async () => {},
      unlogMigration: async () => {
        throw new Error('migrations are not undone')
      },
    },
    logger: undefined,
  })
  await umzug.up()
}

async function apply(db: Database, name: string, file: URL): Promise<void> {
  const text = await readFile(file, 'utf8')
  await db.begin(async (transaction) => {
    await transaction.unsafe(text).simple()
    await transaction`INSERT INTO schema_migrations (name) VALUES (${name})`
  })
}
