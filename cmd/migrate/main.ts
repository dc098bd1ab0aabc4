/** Brings the database of PENSTOCK_DATABASE_URL to the schema of this version, and ends. */

import { migrate } from '../../internal/postgres/migrate.ts'
import { messageOf } from '../../internal/runtime/thrown.ts'
import { ConfigError, readConfig } from '../config/config.ts'
import { reachDatabase } from '../wiring/database.ts'

try {
  const { databaseUrl } = readConfig(process.env, 'migrate')
  if (databaseUrl === undefined) throw new ConfigError('PENSTOCK_DATABASE_URL: is required for migrate')
  await reachDatabase(databaseUrl)
  await migrate(databaseUrl)
  process.stdout.write('The schema is up to date.\n')
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`)
  process.exitCode = 1
}
