/**
 * `npm run account -- <customerId>`: a new owner key of an existing or new customer, printed once
 * (docs/architecture/protocol.md, "Accounts"). With `--take-over` or `--keep-creator` also of one that another customer
 * created, which reads it no more, or goes on. With `--suspend` or `--resume`: suspends a customer, or ends it.
 * With `--revoke-keys`: revokes all its keys (docs/operations/runbooks.md, "Suspend a customer", "A stolen key").
 */
import { join } from 'node:path'
import { ServiceError } from '../../internal/domain/errors.ts'
import { addressIn } from '../../internal/embedded/postgres-server.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { checkSchema } from '../../internal/postgres/migrate.ts'
import { type Config, readConfig } from '../config/config.ts'
import { reachDatabase } from '../wiring/database.ts'
import { createKey } from './create-key.ts'
import { revokeKeys } from './revoke-keys.ts'
import { setSuspended } from './suspend.ts'

const USAGE =
  'usage: npm run account -- <customerId> [--take-over | --keep-creator | --suspend | --resume | --revoke-keys]'

type Act = 'key' | 'take-over' | 'keep' | 'suspend' | 'resume' | 'revoke-keys'

interface Wanted {
  customerId: string
  act: Act
}

const acts = new Map<string | undefined, Act>([
  [undefined, 'key'],
  ['--take-over', 'take-over'],
  ['--keep-creator', 'keep'],
  ['--suspend', 'suspend'],
  ['--resume', 'resume'],
  ['--revoke-keys', 'revoke-keys'],
])

/** undefined: it is no use of the command. */
function parseArguments(args: readonly string[]): Wanted | undefined {
  const [customerId, ...more] = args.filter((arg) => !arg.startsWith('--'))
  const [option, ...others] = args.filter((arg) => arg.startsWith('--'))
  if (customerId === undefined || more.length + others.length > 0) return undefined
  const act = acts.get(option)
  return act && { customerId, act }
}

/** What is printed. */
async function run({ customerId, act }: Wanted): Promise<string> {
  const config = readConfig(process.env, 'penstock')
  const databaseUrl = config.databaseUrl ?? addressIn(join(config.dataDir, 'postgres'))
  if (databaseUrl === undefined) {
    throw new Error(`no database in ${config.dataDir}: start Penstock first, or set PENSTOCK_DATABASE_URL`)
  }
  if (config.databaseUrl !== undefined) await reachDatabase(config.databaseUrl)
  const db = connect(databaseUrl, { max: 1 })
  try {
    return await perform(db, config, { customerId, act })
  } finally {
    await db.end({ timeout: 2 })
  }
}

async function perform(db: Database, config: Config, { customerId, act }: Wanted): Promise<string> {
  if (act === 'key') return createKey(db, config, customerId)
  if (act === 'take-over' || act === 'keep') return createKey(db, config, customerId, act)
  await checkSchema(db)
  if (act === 'revoke-keys') return revokeKeys(db, config, customerId)
  return setSuspended(db, customerId, act === 'suspend')
}

const wanted = parseArguments(process.argv.slice(2))
if (wanted === undefined) {
  process.stderr.write(`${USAGE}\n`)
  process.exitCode = 2
} else {
  try {
    process.stdout.write(`${await run(wanted)}\n`)
  } catch (error) {
    const text = error instanceof ServiceError ? error.body.error : (error as Error).message
    process.stderr.write(`${text}\n`)
    process.exitCode = 1
  }
}
