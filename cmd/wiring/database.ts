/** The first question to a database that the configuration names: whoever set the variable learns that it is that one. */
import { connect } from '../../internal/postgres/connection.ts'
import { ConfigError } from '../config/config.ts'

const VARIABLE = 'PENSTOCK_DATABASE_URL'

/** Rejects with ConfigError, which names the variable and the address, unless Postgres answers at `databaseUrl`. */
export async function reachDatabase(databaseUrl: string): Promise<void> {
  const db = connect(databaseUrl, { max: 1 })
  try {
    await db`SELECT 1`
  } catch (error) {
    const { host, pathname } = new URL(databaseUrl)
    throw new ConfigError(`${VARIABLE}: Postgres at ${host}${pathname} cannot be used: ${reasonOf(error)}`)
  } finally {
    await db.end({ timeout: 2 })
  }
}

/** A name with several addresses fails by all of them, and the whole has no text of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join(', ')
  const { message, code } = error as NodeJS.ErrnoException
  return message || String(code)
}
