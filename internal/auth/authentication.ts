/** Who asks, by API key (specification, "Authentication" 1 to 3). */

import { ServiceError } from '../domain/errors.ts'
import type { ApiKeyRecord } from '../domain/model.ts'
import type { Principal } from '../domain/principal.ts'
import { DeadlineError } from '../runtime/deadline.ts'

export interface KeyAuthentication {
  /** Throws 401 `Invalid or revoked API key`; 503 while the database cannot be asked. */
  byKey(secret: string): Promise<Principal>
}

export function createKeyAuthentication(keys: {
  authenticate(secret: string): Promise<ApiKeyRecord | undefined>
}): KeyAuthentication {
  return {
    async byKey(secret) {
      const record = await keys.authenticate(secret).catch(refuseWhenLate)
      if (record === undefined) throw new ServiceError('keyInvalid')
      return principalOf(record)
    },
  }
}

function refuseWhenLate(error: unknown): never {
  throw error instanceof DeadlineError ? new ServiceError('databaseUnavailable', {}, { cause: error }) : error
}

export function principalOf(record: ApiKeyRecord): Principal {
  const { customerId, role, projectIds, keyId } = record
  return { customerId, role, ...(projectIds && { projectIds }), keyId, via: 'key' }
}
