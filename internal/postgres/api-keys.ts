/** API keys (docs/reference/api.md, "API keys"): one SQL operation a function. Only hashes are stored. */

import type { ApiKeyRows, ApiKeyStore, NewApiKey } from '../auth/ports.ts'
import type { ApiKeyRecord, KnownKey, Role } from '../domain/model.ts'
import type { Scope } from '../domain/principal.ts'
import { refusingWhenAway } from './availability.ts'
import type { Database, Queryable, Transaction } from './connection.ts'
import { lockKeys, REVOKED_KEYS_KEPT, removeRevoked } from './revoked-keys.ts'

interface ApiKeyRow {
  key_id: string
  customer_id: string
  name: string
  hash: Buffer
  key_prefix: string
  role: Role
  project_ids: string[] | null
  created_at: Date
  revoked_at: Date | null
  last_used_at: Date | null
}

export function createApiKeyStore(db: Database): ApiKeyStore {
  return refusingWhenAway<ApiKeyStore>({
    insert: (key, by) => insertWithin(db, key, by),
    list: (scope) => listKeys(db, scope),
    revoke: (scope, keyId, ofRoles) => revokeKey(db, scope, keyId, ofRoles),
    revokeAll: (customerId) => revokeAll(db, customerId),
    ensure: (key) => ensureKey(db, key),
  })
}

export function createApiKeyRows(db: Database): ApiKeyRows {
  return refusingWhenAway<ApiKeyRows>({
    async byHashes(hashes) {
      const rows = await db<(ApiKeyRow & { suspended: boolean })[]>`
        SELECT *, is_suspended(customer_id) AS suspended FROM api_keys
        WHERE hash IN (SELECT decode(hex, 'hex') FROM unnest(${[...hashes]}::text[]) AS hex)`
      return new Map(rows.map((row) => [row.hash.toString('hex'), knownKeyOf(row)]))
    },
    markUsed: (uses) => markUsed(db, uses),
  })
}

function insertWithin(
  db: Database,
  key: NewApiKey,
  { createdBy, activeLimit }: Parameters<ApiKeyStore['insert']>[1],
): ReturnType<ApiKeyStore['insert']> {
  return db.begin(async (transaction) => {
    await lockKeys(transaction, key.customerId)
    // The key may have been revoked since the request was let in. It must leave no other key behind.
    if (createdBy !== null && !(await isActive(transaction, createdBy))) return 'no-creator'
    if (!(await ownsProjects(transaction, key))) return 'no-project'
    if (activeLimit !== null && (await countActive(transaction, key.customerId)) >= activeLimit)
      return 'limit'
    const row = await insertKey(transaction, key)
    await removeRevoked(transaction, key.customerId)
    return keyOf(row)
  })
}

async function isActive(db: Transaction, keyId: string): Promise<boolean> {
  const rows = await db`SELECT FROM api_keys WHERE key_id = ${keyId} AND revoked_at IS NULL`
  return rows.length > 0
}

async function ownsProjects(db: Transaction, key: NewApiKey): Promise<boolean> {
  if (key.projectIds === null) return true
  const [row] = await db<{ count: number }[]>`
    SELECT count(*) FROM projects
    WHERE customer_id = ${key.customerId} AND project_id = ANY (${[...key.projectIds]}::text[])`
  return row?.count === new Set(key.projectIds).size
}

async function countActive(db: Transaction, customerId: string): Promise<number> {
  const [row] = await db<{ count: number }[]>`
    SELECT count(*) FROM api_keys WHERE customer_id = ${customerId} AND revoked_at IS NULL`
  return row?.count ?? 0
}

async function insertKey(db: Queryable, key: NewApiKey): Promise<ApiKeyRow> {
  const [row] = await db<ApiKeyRow[]>`
    INSERT INTO api_keys (key_id, customer_id, name, hash, key_prefix, role, project_ids)
    ${valuesOf(db, key)} RETURNING *`
  return row!
}

/** The update changes nothing: it only answers the row that is there. */
async function ensureKey(db: Database, key: NewApiKey): Promise<ApiKeyRecord> {
  const [row] = await db<ApiKeyRow[]>`
    WITH stored AS (
      INSERT INTO api_keys (key_id, customer_id, name, hash, key_prefix, role, project_ids)
      ${valuesOf(db, key)} ON CONFLICT (hash) DO UPDATE SET hash = excluded.hash RETURNING *
    ), marked AS (
      INSERT INTO configured_keys (key_id) SELECT key_id FROM stored ON CONFLICT DO NOTHING)
    SELECT * FROM stored`
  return keyOf(row!)
}

function valuesOf(db: Queryable, key: NewApiKey) {
  const projectIds = key.projectIds === null ? null : [...key.projectIds]
  return db`SELECT ${key.keyId}, ${key.customerId}, ${key.name}, decode(${key.hash}, 'hex'), ${key.keyPrefix},
    ${key.role}, ${projectIds}::text[]`
}

/** Of the revoked ones those that are kept: earlier versions kept more than a process can hold. */
async function listKeys(db: Database, scope: Scope): Promise<ApiKeyRecord[]> {
  const { customerId } = scope
  const rows = await db<ApiKeyRow[]>`
    SELECT * FROM (
      SELECT * FROM api_keys WHERE customer_id = ${customerId} AND revoked_at IS NULL
      UNION ALL
      (SELECT * FROM api_keys WHERE customer_id = ${customerId} AND revoked_at IS NOT NULL
        ORDER BY revoked_at DESC, key_id LIMIT ${REVOKED_KEYS_KEPT})) AS kept
    WHERE ${visible(db, scope)} ORDER BY created_at DESC, key_id`
  return rows.map(keyOf)
}

type Revocation = Awaited<ReturnType<ApiKeyStore['revoke']>>

function revokeKey(db: Database, scope: Scope, keyId: string, ofRoles: readonly Role[]): Promise<Revocation> {
  return db.begin(async (transaction) => {
    await lockKeys(transaction, scope.customerId)
    const outcome = await revokeOne(transaction, scope, keyId, ofRoles)
    if (outcome === 'revoked') await removeRevoked(transaction, scope.customerId)
    return outcome
  })
}

async function revokeOne(
  db: Transaction,
  scope: Scope,
  keyId: string,
  ofRoles: readonly Role[],
): Promise<Revocation> {
  const [revoked] = await db`
    UPDATE api_keys SET revoked_at = clock_timestamp()
    WHERE key_id = ${keyId} AND revoked_at IS NULL AND role = ANY (${[...ofRoles]}::text[])
      AND ${visible(db, scope)} RETURNING 1`
  if (revoked !== undefined) return 'revoked'
  const [known] = await db<{ role: Role }[]>`
    SELECT role FROM api_keys WHERE key_id = ${keyId} AND ${visible(db, scope)}`
  if (known === undefined) return undefined
  return ofRoles.includes(known.role) ? 'already-revoked' : 'other-role'
}

function revokeAll(db: Database, customerId: string): Promise<string[] | undefined> {
  return db.begin(async (transaction) => {
    await lockKeys(transaction, customerId)
    const [known] = await transaction`SELECT FROM customers WHERE customer_id = ${customerId}`
    if (known === undefined) return undefined
    const revoked = await transaction<{ id: string }[]>`
      UPDATE api_keys SET revoked_at = clock_timestamp()
      WHERE customer_id = ${customerId} AND revoked_at IS NULL RETURNING key_id AS id`
    await removeRevoked(transaction, customerId)
    return revoked.map(({ id }) => id)
  })
}

/** A project-scoped reader reaches the keys that reach no further than itself. */
function visible(db: Queryable, scope: Scope) {
  const projectIds = scope.projectIds === null ? null : [...scope.projectIds]
  return db`customer_id = ${scope.customerId}
    AND (${projectIds}::text[] IS NULL OR project_ids <@ ${projectIds}::text[])`
}

async function markUsed(db: Database, uses: ReadonlyMap<string, number>): Promise<void> {
  // In the order of ids: two nodes that write the same keys wait for each other instead of dead-locking.
  await db`
    WITH used AS (
      SELECT key_id, at FROM api_keys
      JOIN unnest(${[...uses.keys()]}::text[], ${[...uses.values()]}::float8[]) AS use (id, at) ON key_id = id
      ORDER BY key_id FOR NO KEY UPDATE OF api_keys)
    UPDATE api_keys SET last_used_at = greatest(last_used_at, to_timestamp(used.at / 1000))
    FROM used WHERE api_keys.key_id = used.key_id`
}

function knownKeyOf(row: ApiKeyRow & { suspended: boolean }): KnownKey {
  return { ...keyOf(row), suspended: row.suspended }
}

function keyOf(row: ApiKeyRow): ApiKeyRecord {
  return {
    keyId: row.key_id,
    customerId: row.customer_id,
    name: row.name,
    keyPrefix: row.key_prefix,
    role: row.role,
    ...(row.project_ids !== null && { projectIds: row.project_ids }),
    createdAt: row.created_at.toISOString(),
    revokedAt: row.revoked_at?.toISOString() ?? null,
    lastUsedAt: row.last_used_at?.toISOString() ?? null,
  }
}
