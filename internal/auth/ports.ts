/** What authentication and the use cases of API keys need (docs/reference/api.md, "Authentication" and "API keys"). */

import type { Identity } from '../domain/identity.ts'
import type { ApiKeyRecord, Creator, KnownKey, Role } from '../domain/model.ts'
import type { Scope } from '../domain/principal.ts'

export interface NewApiKey {
  keyId: string
  customerId: string
  name: string
  /** SHA-256 of the secret, lowercase hex. */
  hash: string
  keyPrefix: string
  role: Role
  /** null: all projects. */
  projectIds: readonly string[] | null
}

export interface ApiKeyStore {
  /**
   * 'limit': `activeLimit` keys of the customer are active already (exact under concurrency; null: no
   * limit). 'no-project': one of `projectIds` is no project of the customer. 'no-creator': the key `createdBy` is not
   * active any more; null: no key creates it. As a revocation, it removes what was revoked long ago.
   */
  insert(
    key: NewApiKey,
    by: { createdBy: string | null; activeLimit: number | null },
  ): Promise<ApiKeyRecord | 'limit' | 'no-project' | 'no-creator'>
  /**
   * The active ones, and the 100 that were revoked last; newest first. A project-scoped reader sees the keys that reach no
   * further than itself.
   */
  list(scope: Scope): Promise<ApiKeyRecord[]>
  /** A key of another role than these is left as it is: `other-role`. */
  revoke(
    scope: Scope,
    keyId: string,
    ofRoles: readonly Role[],
  ): Promise<'revoked' | 'already-revoked' | 'other-role' | undefined>
  /** Revokes all active keys of the customer and answers their ids. undefined: no such customer. */
  revokeAll(customerId: string): Promise<string[] | undefined>
  /** Stores a key of the configuration unless its hash is stored already; answers what is stored. It is never removed. */
  ensure(key: NewApiKey): Promise<ApiKeyRecord>
}

/** Reads and writes of the key cache, many keys in one statement. */
export interface ApiKeyRows {
  /** By SHA-256 of the secret, lowercase hex; revoked ones too. */
  byHashes(hashes: readonly string[]): Promise<Map<string, KnownKey>>
  /** Times in ms; never moves a stored time back. */
  markUsed(uses: ReadonlyMap<string, number>): Promise<void>
}

/** Creates the customer when it is absent. Throws when another one created it, and it is not said what becomes of that one. */
export type EnsureCustomer = (customerId: string, creator?: Creator) => Promise<void>

/** Claims `iss` and `sub` of an ID token: together they name one account of the identity provider. */
export interface Account {
  readonly issuer: string
  readonly subject: string
}

/** The customer of an account. */
export interface AccountHolder {
  readonly customerId: string
  readonly suspended: boolean
}

/** Reads of the identity cache, many accounts in one statement. */
export interface IdentityRows {
  /** Unknown accounts are left out. */
  customersOf(accounts: readonly Account[]): Promise<(Account & AccountHolder)[]>
}

/** The identity provider, as far as it is asked. */
export interface TokenVerifier {
  /** Throws ServiceError: 401 for a token that is not good, 503 while the provider's keys cannot be had. */
  verify(token: string): Promise<Identity>
}

/** Creates the account's customer unless it has one; answers its `customerId`. */
export type SignUp = (identity: Identity) => Promise<string>
