/** Brings the database of PENSTOCK_DATABASE_URL to the schema of this version, and ends. */
import { migrate } from '../../internal/postgres/migrate.ts'
import { ConfigError, readConfig } from '../../internal/runtime/config.ts'

try {
  const { databaseUrl } = readConfig(process.env, 'migrate')
  if (databaseUrl === undefined) throw new ConfigError('PENSTOCK_DATABASE_URL: is required for migrate')
  await migrate(databaseUrl)
  process.stdout.write('The schema is up to date.\n')
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exitCode = 1
}
