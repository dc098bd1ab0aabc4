/** Who asks, by API key (specification, "Authentication" 1 to 3). */

import { ServiceError } from '../domain/errors.ts'
import type { ApiKeyRecord } from '../domain/model.ts'
import type { Principal } from '../domain/principal.ts'

export interface KeyAuthentication {
  /** Throws 401 `Invalid or revoked API key`; rejects with the database's error while it cannot be asked. */
  byKey(secret: string): Promise<Principal>
}

export function createKeyAuthentication(keys: {
  authenticate(secret: string): Promise<ApiKeyRecord | undefined>
}): KeyAuthentication {
  return {
    async byKey(secret) {
      const record = await keys.authenticate(secret)
      if (record === undefined) throw new ServiceError('keyInvalid')
      return principalOf(record)
    },
  }
}

export function principalOf(record: ApiKeyRecord): Principal {
  const { customerId, role, projectIds, keyId } = record
  return { customerId, role, ...(projectIds && { projectIds }), keyId, via: 'key' }
}
