/** Which customer of a payment provider an account is, and whose money the provider moves (migration 052). */

import type { ProviderCustomers, ProviderMode } from '../billing/ports.ts'
import type { Database, Queryable, Transaction } from './connection.ts'

/** `mode`: of the provider's key; nothing is kept for another mode than the database's. undefined: it has no modes. */
export function createProviderCustomers(db: Database, mode?: ProviderMode): ProviderCustomers {
  return {
    find: (provider, customerId) => find(db, provider, customerId),
    async keep(provider, customerId, providerCustomerId) {
      let kept = ''
      await db.begin(async (transaction) => {
        await requireMode(transaction, provider, mode)
        kept = await insert(transaction, provider, customerId, providerCustomerId)
      })
      return kept
    },
    async replace(provider, customerId, { gone, made }) {
      let isNew = false
      let kept = ''
      await db.begin(async (transaction) => {
        await requireMode(transaction, provider, mode)
        isNew = await retire(transaction, provider, customerId, gone)
        kept = await insert(transaction, provider, customerId, made)
      })
      return { kept, isNew }
    },
  }
}

/**
 * The mode of the provider in this database: `mode`, unless accounts are customers in the other one. Who is not answered
 * his own mode must not go on.
 */
export async function claimProviderMode(
  db: Database,
  provider: string,
  mode: ProviderMode,
): Promise<ProviderMode> {
  let claimed = mode
  await db.begin(async (transaction) => {
    await transaction`
      INSERT INTO provider_modes (provider, mode) VALUES (${provider}, ${mode}) ON CONFLICT DO NOTHING`
    const [row] = await transaction<{ mode: ProviderMode }[]>`
      SELECT mode FROM provider_modes WHERE provider = ${provider} FOR UPDATE`
    if (row!.mode === mode) return
    const [customer] = await transaction`SELECT FROM provider_customers WHERE provider = ${provider} LIMIT 1`
    if (customer === undefined) {
      await transaction`UPDATE provider_modes SET mode = ${mode} WHERE provider = ${provider}`
    } else claimed = row!.mode
  })
  return claimed
}

/** Until the transaction ends the mode stays as it is. */
async function requireMode(db: Transaction, provider: string, mode: ProviderMode | undefined): Promise<void> {
  if (mode === undefined) return
  const [row] = await db<{ mode: ProviderMode }[]>`
    SELECT mode FROM provider_modes WHERE provider = ${provider} FOR SHARE`
  if (row?.mode !== mode) throw new Error(`the database is not of the ${mode} mode of ${provider}`)
}

async function find(db: Queryable, provider: string, customerId: string): Promise<string | undefined> {
  const [row] = await db<{ provider_customer_id: string }[]>`
    SELECT provider_customer_id FROM provider_customers
    WHERE provider = ${provider} AND customer_id = ${customerId}`
  return row?.provider_customer_id
}

/** Nothing happens when the account has one. Answers the one that it has. */
async function insert(
  db: Transaction,
  provider: string,
  customerId: string,
  providerCustomerId: string,
): Promise<string> {
  await db`
    INSERT INTO provider_customers (provider, customer_id, provider_customer_id)
    VALUES (${provider}, ${customerId}, ${providerCustomerId})
    ON CONFLICT DO NOTHING`
  const kept = await find(db, provider, customerId)
  if (kept === undefined)
    throw new Error(`the customer ${providerCustomerId} of ${provider} is another account's`)
  return kept
}

/** false: somebody was faster. */
async function retire(db: Transaction, provider: string, customerId: string, gone: string): Promise<boolean> {
  const retired = await db`
    WITH retired AS (
      DELETE FROM provider_customers
      WHERE provider = ${provider} AND customer_id = ${customerId} AND provider_customer_id = ${gone}
      RETURNING provider, provider_customer_id, customer_id
    )
    INSERT INTO former_provider_customers (provider, provider_customer_id, customer_id)
    SELECT * FROM retired RETURNING provider_customer_id`
  return retired.length > 0
}
