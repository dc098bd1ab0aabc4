/** API keys (docs/reference/api.md, "API keys"). Refusals are thrown as ServiceError. */

import { invalid, required, ServiceError } from '../domain/errors.ts'
import { isIdentifier, parseIdentifier } from '../domain/identifiers.ts'
import type { ApiKeyRecord, Creator, Role } from '../domain/model.ts'
import { parseName } from '../domain/names.ts'
import { type Principal, scopeOf } from '../domain/principal.ts'
import { areWithinProjects, isRole, isWithinRole, roles, rolesUpTo } from '../domain/roles.ts'
import type { Randomness } from '../runtime/clock.ts'
import type { ApiKeyStore, EnsureCustomer, NewApiKey } from './ports.ts'
import { hashOf, isSecret, prefixOf, SECRET_BYTES, secretOf } from './secret.ts'

/** Answer of a creation: the only time that the secret is seen. */
export interface CreatedApiKey {
  keyId: string
  name: string
  secret: string
  keyPrefix: string
  role: Role
  /** Absent: all projects. */
  projectIds?: string[]
  /** ISO 8601. */
  createdAt: string
}

export interface ApiKeys {
  /**
   * `role` and `projectIds` default to the caller's own. 400 names the field or a project is not found, 403
   * for more than the caller has, 409 at 10 active keys. 401 when the caller's key was revoked meanwhile.
   */
  create(
    principal: Principal,
    input: { name: unknown; role?: unknown; projectIds?: unknown },
  ): Promise<CreatedApiKey>
  /** Newest first; a project-scoped caller sees the keys that reach no further than its own. */
  list(principal: Principal): Promise<ApiKeyRecord[]>
  /** 404, 403 when its role is higher than the caller's, or 409 when it is revoked already. On this node it stops working before this resolves. */
  revoke(principal: Principal, keyId: string): Promise<void>
  /**
   * Revokes all active keys of a customer, for whoever runs the installation, and answers their ids. 400 for a bad id,
   * 404 for an unknown customer.
   */
  revokeAll(customerId: string): Promise<string[]>
  /**
   * Makes sure that this secret is an owner key of the customer, creating both when absent (`PENSTOCK_OWNER_KEYS`:
   * docs/architecture/protocol.md, "Accounts"). 'revoked': it was revoked through the API and stays so. Throws when
   * the secret is malformed or another customer's, or when another one created the customer and it was never in use.
   */
  ensureOwnerKey(customerId: string, secret: string): Promise<'active' | 'revoked'>
  /** A new owner key of an existing or new customer, beyond any limit: for whoever runs the installation. */
  createOwnerKey(customerId: string, creator?: Creator): Promise<{ keyId: string; secret: string }>
}

export interface ApiKeysOptions {
  keys: ApiKeyStore
  /** The node's cache forgets the key. */
  forget: (keyIds: readonly string[]) => void
  ensureCustomer: EnsureCustomer
  randomness: Randomness
  /** A new `keyId`. */
  newKeyId: () => string
}

/** docs/reference/api.md, "Limits". */
export const ACTIVE_KEY_LIMIT = 10
export const KEY_NAME_MAX_LENGTH = 100

export function createApiKeys(options: ApiKeysOptions): ApiKeys {
  const { keys, forget, ensureCustomer, randomness, newKeyId } = options

  function keyFrom(secret: string, rest: Omit<NewApiKey, 'keyId' | 'hash' | 'keyPrefix'>): NewApiKey {
    return { ...rest, keyId: newKeyId(), hash: hashOf(secret), keyPrefix: prefixOf(secret) }
  }

  function ownerKey(customerId: string, secret: string): NewApiKey {
    return keyFrom(secret, { customerId, name: 'Owner key', role: 'owner', projectIds: null })
  }

  return {
    async create(principal, input) {
      const wanted = wantedKey(principal, input)
      const secret = secretOf(randomness.bytes(SECRET_BYTES))
      const by = { createdBy: principal.keyId ?? null, activeLimit: ACTIVE_KEY_LIMIT }
      return createdKey(await keys.insert(keyFrom(secret, wanted), by), secret)
    },
    list: (principal) => keys.list(scopeOf(principal)),
    async revoke(principal, keyId) {
      const outcome = await keys.revoke(scopeOf(principal), keyId, rolesUpTo(principal.role))
      if (outcome === undefined) throw new ServiceError('apiKeyNotFound')
      if (outcome === 'other-role') throw new ServiceError('apiKeyRoleHigher')
      if (outcome === 'already-revoked') throw new ServiceError('apiKeyRevoked')
      forget([keyId])
    },
    async revokeAll(id) {
      const keyIds = await keys.revokeAll(required(parseIdentifier('customerId', id)))
      if (keyIds === undefined) throw new ServiceError('customerNotFound')
      forget(keyIds)
      return keyIds
    },
    async ensureOwnerKey(customerId, secret) {
      if (!isSecret(secret))
        throw new Error(`the key of ${customerId} must be svk_ and 48 lowercase hex characters`)
      await ensureCustomer(customerId)
      return ownedBy(customerId, await keys.ensure(ownerKey(customerId, secret)))
    },
    async createOwnerKey(customerId, creator) {
      await ensureCustomer(customerId, creator)
      const secret = secretOf(randomness.bytes(SECRET_BYTES))
      const key = ownerKey(customerId, secret)
      await keys.insert(key, { createdBy: null, activeLimit: null })
      return { keyId: key.keyId, secret }
    },
  }
}

function wantedKey(
  principal: Principal,
  input: { name: unknown; role?: unknown; projectIds?: unknown },
): Omit<NewApiKey, 'keyId' | 'hash' | 'keyPrefix'> {
  const name = required(parseName('name', input.name, KEY_NAME_MAX_LENGTH))
  const role = input.role ?? principal.role
  if (!isRole(role)) throw invalid(`role must be one of: ${roles.join(', ')}`)
  const projectIds = projectIdsOf(input.projectIds) ?? principal.projectIds
  if (!isWithinRole(role, principal.role)) throw new ServiceError('roleTooHigh')
  if (!areWithinProjects(projectIds, principal.projectIds)) throw new ServiceError('projectsTooBroad')
  return { customerId: principal.customerId, name, role, projectIds: projectIds ?? null }
}

/** An empty list would be a key for nothing, or, to a careless reader, for everything. */
function projectIdsOf(value: unknown): string[] | undefined {
  if (value === undefined || value === null) return undefined
  const texts = Array.isArray(value) && value.length > 0 && value.every((id) => typeof id === 'string')
  if (!texts) throw invalid('projectIds must be a list of at least one project id')
  const unknown = value.find((id) => !isIdentifier(id))
  if (unknown !== undefined) throw projectUnknown()
  return [...new Set<string>(value)]
}

function projectUnknown(): ServiceError {
  return invalid('projectIds names a project that does not exist')
}

function createdKey(outcome: Awaited<ReturnType<ApiKeyStore['insert']>>, secret: string): CreatedApiKey {
  if (outcome === 'limit') throw new ServiceError('apiKeyLimit')
  if (outcome === 'no-project') throw projectUnknown()
  if (outcome === 'no-creator') throw new ServiceError('keyInvalid')
  const { keyId, name, keyPrefix, role, projectIds, createdAt } = outcome
  return { keyId, name, secret, keyPrefix, role, ...(projectIds && { projectIds }), createdAt }
}

function ownedBy(customerId: string, stored: ApiKeyRecord): 'active' | 'revoked' {
  if (stored.customerId !== customerId) {
    throw new Error(`the key ${stored.keyPrefix}… of ${customerId} belongs to another customer`)
  }
  if (stored.role !== 'owner' || stored.projectIds !== undefined) {
    throw new Error(`the key ${stored.keyPrefix}… of ${customerId} is no owner key`)
  }
  return stored.revokedAt === null ? 'active' : 'revoked'
}
