/** Buffers as the database of an installation has them. */
import { join } from 'node:path'
import { required, ServiceError } from '../../internal/domain/errors.ts'
import { parseIdentifier } from '../../internal/domain/identifiers.ts'
import type { Buffer } from '../../internal/domain/model.ts'
import { addressIn } from '../../internal/embedded/postgres-server.ts'
import { createBufferStore } from '../../internal/postgres/buffers.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createCustomerStore } from '../../internal/postgres/customers.ts'
import { checkSchema } from '../../internal/postgres/migrate.ts'
import { createSecretBox, type SecretBox, SecretError } from '../../internal/postgres/secrets.ts'
import { type Config, readConfig } from '../config/config.ts'
import { reachDatabase } from '../wiring/database.ts'
import { storedSecretKey } from '../wiring/secrets.ts'

/** Throws a ServiceError for a bad or unknown customer. */
export async function storedBuffers(customerId: string, projectId: string | undefined): Promise<Buffer[]> {
  required(parseIdentifier('customer', customerId))
  const config = readConfig(process.env, 'penstock')
  const databaseUrl = config.databaseUrl ?? addressIn(join(config.dataDir, 'postgres'))
  if (databaseUrl === undefined)
    throw new Error(`no database in ${config.dataDir}: start Penstock first, or set PENSTOCK_DATABASE_URL`)
  if (config.databaseUrl !== undefined) await reachDatabase(config.databaseUrl)
  const db = connect(databaseUrl, { max: 1 })
  try {
    await checkSchema(db)
    return await buffersIn(db, boxOf(config), customerId, projectId)
  } finally {
    await db.end({ timeout: 2 })
  }
}

async function buffersIn(
  db: Database,
  box: SecretBox,
  customerId: string,
  projectId: string | undefined,
): Promise<Buffer[]> {
  const customer = await createCustomerStore(db).find(customerId, customerId)
  if (customer === undefined) throw new ServiceError('customerNotFound')
  return createBufferStore(db, box).list({ customerId, projectIds: null }, projectId)
}

/** Secrets are only named, so it works without their key, too; only a header that is to be printed needs it. */
function boxOf({ secretKeys, dataDir }: Config): SecretBox {
  const keys = secretKeys ?? storedSecretKey(dataDir)
  if (keys !== undefined) return createSecretBox(keys)
  const closed = () => {
    throw new SecretError('there is no key')
  }
  return { keyIds: [], seal: closed, open: closed }
}
