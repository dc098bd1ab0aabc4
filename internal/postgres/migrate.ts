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

/** The database was brought further by a newer version of the program. */
export class NewerSchemaError extends Error {
  override readonly name = 'NewerSchemaError'
}

/** The database lacks migrations of this version. */
export class OlderSchemaError extends Error {
  override readonly name = 'OlderSchemaError'
}

const FOLDER = new URL('./migrations/', import.meta.url)

/** Rejects with NewerSchemaError or OlderSchemaError unless the database has exactly this version's schema. */
export async function checkSchema(db: Database, folder: URL = FOLDER): Promise<void> {
  const [there] = await db`SELECT to_regclass('schema_migrations') IS NOT NULL AS marked`
  const applied = there?.marked ? await appliedNames(db) : []
  const names = await namesIn(folder)
  refuseNewer(applied, names)
  const missing = names.find((name) => !applied.includes(name))
  if (missing !== undefined) {
    throw new OlderSchemaError(`the database lacks the migration ${missing}: run the migrate program first`)
  }
}

/**
 * Applies what is missing. Rejects with NewerSchemaError before anything, and with everything of the failed file
 * undone when one fails.
 */
export async function migrate(databaseUrl: string, folder: URL = FOLDER): Promise<void> {
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
  const names = await namesIn(folder)
  refuseNewer(await appliedNames(db), names)
  const umzug = new Umzug({
    migrations: names.map((name) => ({ name, up: () => apply(db, name, new URL(name, folder)) })),
    storage: {
      executed: () => appliedNames(db),
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

async function namesIn(folder: URL): Promise<string[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort()
  const misnamed = names.find((name) => !FILE_NAME.test(name))
  if (misnamed !== undefined) throw new Error(`migration ${misnamed}: the name must be NNN-name.sql`)
  return names
}

async function appliedNames(db: Database): Promise<string[]> {
  return (await db`SELECT name FROM schema_migrations ORDER BY name`).map((row) => row.name)
}

function refuseNewer(applied: readonly string[], names: readonly string[]): void {
  const unknown = applied.find((name) => !names.includes(name))
  if (unknown === undefined) return
  throw new NewerSchemaError(`the database has the migration ${unknown}, which this version does not know`)
}

async function apply(db: Database, name: string, file: URL): Promise<void> {
  const text = await readFile(file, 'utf8')
  await db.begin(async (transaction) => {
    await transaction.unsafe(text).simple()
    await transaction`INSERT INTO schema_migrations (name) VALUES (${name})`
  })
}
