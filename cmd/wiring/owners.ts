/**
 * Owner keys of a start (docs/architecture/protocol.md, "Accounts"): those of the configuration, else one for the
 * customer `local`.
 */
import type { ApiKeys } from '../../internal/auth/api-keys.ts'
import type { Node, Store } from './foundation.ts'
import { leaveOwnerKey } from './secrets.ts'

const LOCAL_CUSTOMER = 'local'

/** A generated key as a shell word, and its file when it is not shown. */
export interface OwnerKey {
  key: string
  keyFile: string | undefined
}

/** undefined: no key was made. */
export async function ensureOwners(
  { config, log }: Node,
  { db }: Store,
  apiKeys: ApiKeys,
  dataDir: string,
): Promise<OwnerKey | undefined> {
  for (const { customerId, secret } of config.ownerKeys ?? []) {
    const state = await apiKeys.ensureOwnerKey(customerId, secret)
    if (state === 'revoked') log.warn({ customerId }, 'this owner key was revoked and stays so')
  }
  if (config.ownerKeys || !config.local) return undefined
  const [known] = await db`SELECT FROM api_keys WHERE customer_id = ${LOCAL_CUSTOMER} LIMIT 1`
  if (known) return undefined
  const { secret } = await apiKeys.createOwnerKey(LOCAL_CUSTOMER)
  if (process.stdout.isTTY) return { key: secret, keyFile: undefined }
  const keyFile = leaveOwnerKey(dataDir, secret)
  return { key: `$(cat '${keyFile}')`, keyFile }
}
