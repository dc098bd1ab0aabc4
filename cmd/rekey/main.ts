/**
 * `npm run rekey`: moves all secrets at rest to the first key of PENSTOCK_SECRET_KEY, beside nodes that run
 * (docs/operations/secret-keys.md). `--check` only counts. Exit code 0: the first key is the only one that is needed.
 */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { addressIn } from '../../internal/embedded/postgres-server.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { checkSchema } from '../../internal/postgres/migrate.ts'
import { otherRows, rekey } from '../../internal/postgres/rekey.ts'
import { createSecretBox, type SecretBox } from '../../internal/postgres/secrets.ts'
import { readConfig } from '../config/config.ts'
import { storedSecretKey } from '../wiring/secrets.ts'
import { leftLines, rowsText } from './report.ts'

const USAGE = 'usage: npm run rekey [-- --check]\n'

/** Answers whether rows are left that another key than the first one seals. */
async function run(db: Database, box: SecretBox, isCheck: boolean): Promise<boolean> {
  const [first] = box.keyIds
  if (isCheck) {
    const left = await otherRows(db, box)
    process.stdout.write(leftLines(left, box.keyIds, false))
    if (left.length === 0) process.stdout.write(`all secrets are under the key ${first}\n`)
    return left.length > 0
  }
  const { rows, left } = await rekey(db, box, {
    onProgress: (some) => process.stdout.write(`${rowsText(some)} moved …\n`),
  })
  process.stdout.write(leftLines(left, box.keyIds, true))
  const end = left.length === 0 ? `all secrets are under the key ${first}` : 'other keys are still needed'
  process.stdout.write(`${rowsText(rows)} moved to the key ${first}: ${end}\n`)
  return left.length > 0
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { check: { type: 'boolean' } } })
  const config = readConfig(process.env, 'penstock')
  const databaseUrl = config.databaseUrl ?? addressIn(join(config.dataDir, 'postgres'))
  if (databaseUrl === undefined) {
    throw new Error(`no database in ${config.dataDir}: start Penstock first, or set PENSTOCK_DATABASE_URL`)
  }
  const keys = config.secretKeys ?? storedSecretKey(config.dataDir)
  if (keys === undefined) throw new Error(`no key in ${config.dataDir}: set PENSTOCK_SECRET_KEY`)
  const db = connect(databaseUrl, { max: 2 })
  try {
    await checkSchema(db)
    if (await run(db, createSecretBox(keys), values.check === true)) process.exitCode = 1
  } finally {
    await db.end({ timeout: 2 })
  }
}

try {
  await main()
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException
  process.stderr.write(code?.startsWith('ERR_PARSE_ARGS') ? USAGE : `${message}\n`)
  process.exitCode = code?.startsWith('ERR_PARSE_ARGS') ? 2 : 1
}
