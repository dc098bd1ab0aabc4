/**
 * How long revoked API keys are kept (docs/architecture/protocol.md, "Cached configuration"): until enough others of the
 * customer were revoked later. The trigger of `migrations/055-revoked-keys.sql` cuts their entries from the change feed.
 */

import type { Transaction } from './connection.ts'

/** Of a customer. Whoever creates and revokes keys without end has no more of them (docs/reference/api.md, "Limits"). */
export const REVOKED_KEYS_KEPT = 100

/** Earlier versions kept all. A piece takes some 10 to 100 ms, and the next creation or revocation goes on. */
const REMOVED_AT_ONCE = 200

/** Creations and revocations of a customer go one after another, until the commit: two would both count one less. */
export async function lockKeys(transaction: Transaction, customerId: string): Promise<void> {
  // Not a lock on the customer's row: that one belongs to the credits.
  await transaction`SELECT pg_advisory_xact_lock(hashtextextended('api_keys ' || ${customerId}, 0))`
}

/**
 * Removes those that were revoked before the ones that are kept. Keys of the configuration stay: a start would make them
 * anew. So do rows whose last use is being written, until the next call: neither waits for the other.
 */
export async function removeRevoked(transaction: Transaction, customerId: string): Promise<void> {
  await transaction`
    DELETE FROM api_keys WHERE key_id IN (
      SELECT key_id FROM api_keys WHERE key_id IN (
        SELECT key_id FROM api_keys
        WHERE customer_id = ${customerId} AND revoked_at IS NOT NULL
          AND NOT EXISTS (SELECT FROM configured_keys c WHERE c.key_id = api_keys.key_id)
        ORDER BY revoked_at DESC, key_id OFFSET ${REVOKED_KEYS_KEPT} LIMIT ${REMOVED_AT_ONCE})
      FOR UPDATE SKIP LOCKED)`
}
