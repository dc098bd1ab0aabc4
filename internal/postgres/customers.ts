/** Customers (docs/reference/api.md, "Customers"): one SQL operation a function. */

import type { CustomerStore, NewCustomer } from '../accounts/ports.ts'
import type { Customer } from '../domain/model.ts'
import { refusingWhenAway } from './availability.ts'
import { type Caps, NO_CAPS, overCustomers } from './caps.ts'
import type { Database, Transaction } from './connection.ts'
import { usedThisMonth } from './credits.ts'

interface CustomerRow {
  customer_id: string
  name: string
  enabled: boolean
  credits: number
  credit_limit: number
  credits_used_this_month: number
  created_at: Date
  suspended_at?: Date | null
}

export function createCustomerStore(db: Database, caps: Pick<Caps, 'customers'> = NO_CAPS): CustomerStore {
  return refusingWhenAway<CustomerStore>({
    insert: (customer) =>
      db.begin(async (transaction) => {
        if (await overCustomers(transaction, caps.customers, customer.createdBy)) return 'limit'
        return (await insertCustomer(transaction, customer)) ?? 'exists'
      }),
    creatorOf: (customerId) => creatorOf(db, customerId),
    takeOver: (customerId) => takeOver(db, customerId),
    find: (reader, customerId) => findCustomer(db, reader, customerId),
  })
}

/** With its first credits; undefined: the id is taken. */
export async function insertCustomer(db: Transaction, customer: NewCustomer): Promise<Customer | undefined> {
  const inserted = await insertRow(db, customer)
  if (inserted !== undefined && customer.initialCredits > 0) await recordGrant(db, customer)
  return inserted
}

async function insertRow(db: Transaction, customer: NewCustomer): Promise<Customer | undefined> {
  const [row] = await db<CustomerRow[]>`
    INSERT INTO customers (customer_id, name, credits, credit_limit, created_by)
    VALUES (${customer.customerId}, ${customer.name}, ${customer.initialCredits},
      ${customer.initialCredits}, ${customer.createdBy})
    ON CONFLICT (customer_id) DO NOTHING RETURNING *`
  return row && customerOf(row)
}

async function recordGrant(db: Transaction, customer: NewCustomer): Promise<void> {
  await db`
    INSERT INTO credit_transactions (customer_id, amount, type, description, balance_after)
    VALUES (${customer.customerId}, ${customer.initialCredits}, 'grant', 'Initial credits',
      ${customer.initialCredits})`
}

async function creatorOf(
  db: Database,
  customerId: string,
): Promise<{ createdBy: string | null; isInUse: boolean } | undefined> {
  const [row] = await db<{ createdBy: string | null; isInUse: boolean }[]>`
    SELECT created_by AS "createdBy", EXISTS (
      SELECT FROM api_keys k WHERE k.customer_id = c.customer_id) AS "isInUse"
    FROM customers c WHERE customer_id = ${customerId}`
  return row
}

async function takeOver(db: Database, customerId: string): Promise<void> {
  await db`UPDATE customers SET created_by = NULL WHERE customer_id = ${customerId} AND created_by IS NOT NULL`
}

async function findCustomer(db: Database, reader: string, customerId: string): Promise<Customer | undefined> {
  const [row] = await db<CustomerRow[]>`
    SELECT customer_id, name, enabled, credits, credit_limit,
      ${usedThisMonth(db)} AS credits_used_this_month, created_at,
      (SELECT suspended_at FROM suspensions s
        WHERE s.customer_id = customers.customer_id AND resumed_at IS NULL) AS suspended_at
    FROM customers WHERE customer_id = ${customerId} AND (customer_id = ${reader} OR created_by = ${reader})`
  return row && customerOf(row)
}

function customerOf(row: CustomerRow): Customer {
  return {
    customerId: row.customer_id,
    name: row.name,
    enabled: row.enabled,
    credits: row.credits,
    creditLimit: row.credit_limit,
    creditsUsedThisMonth: row.credits_used_this_month,
    createdAt: row.created_at.getTime(),
    ...(row.suspended_at && { suspendedAt: row.suspended_at.getTime() }),
  }
}
