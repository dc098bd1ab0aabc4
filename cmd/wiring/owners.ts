/**
 * Owner keys of a start (docs/architecture/protocol.md, "Accounts"): those of the configuration, else one for the
 * customer `local`.
 */
import { existsSync } from 'node:fs'
import type { ApiKeys } from '../../internal/auth/api-keys.ts'
import { isSecret } from '../../internal/auth/secret.ts'
import { ConfigError } from '../config/config.ts'
import type { Node, Store } from './foundation.ts'
import { leaveOwnerKey, ownerKeyFile } from './secrets.ts'

export const LOCAL_CUSTOMER = 'local'

/** The owner of the customer `local`, as a banner tells of it. */
export interface LocalOwner {
  /** Where its key is; undefined: it was removed, or the data are older than such files. */
  readonly keyFile: string | undefined
  /** No key of the customer was used yet. */
  readonly isNew: boolean
}

/** Those of the configuration. */
export async function ensureOwners({ config, log }: Node, apiKeys: ApiKeys): Promise<void> {
  for (const { customerId, secret } of config.ownerKeys ?? []) {
    const state = await apiKeys.ensureOwnerKey(customerId, secret)
    if (state === 'revoked') log.warn({ customerId }, 'this owner key was revoked and stays so')
  }
}

/**
 * A key for the customer `local`, unless it has one or the configuration names the owners: then undefined. It is in its
 * file before it is in the database, so whoever starts the service again after a crash has it still.
 */
export async function ensureLocalOwner(
  { config }: Node,
  { db }: Store,
  apiKeys: ApiKeys,
): Promise<LocalOwner | undefined> {
  if (config.ownerKeys || !config.local) return undefined
  const [keys] = await db<{ known: boolean; used: boolean }[]>`
    SELECT count(*) > 0 AS known, count(last_used_at) > 0 AS used FROM api_keys WHERE customer_id = ${LOCAL_CUSTOMER}`
  const keyFile = ownerKeyFile(config.dataDir)
  if (!keys?.known) await apiKeys.ensureOwnerKey(LOCAL_CUSTOMER, usable(leaveOwnerKey(keyFile), keyFile))
  return { keyFile: existsSync(keyFile) ? keyFile : undefined, isNew: !keys?.used }
}

function usable(secret: string, file: string): string {
  if (isSecret(secret)) return secret
  throw new ConfigError(`${file} holds no key: remove it, and the next start makes one`)
}
