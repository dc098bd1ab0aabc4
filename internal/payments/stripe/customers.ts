/** Which customer of Stripe an account is: one, made once. */

import type Stripe from 'stripe'
import type { ProviderCustomers } from '../../billing/ports.ts'
import { type Connection, idempotencyKey, orMissing } from './client.ts'
import { CUSTOMER } from './metadata.ts'

/** The name of this provider: in routes, and the key of rows. */
export const STRIPE = 'stripe'

/** `gone`: Stripe's id of a customer that somebody deleted there. */
export interface CustomerReplaced {
  customerId: string
  gone: string
}

export interface CustomerOptions {
  connection: Connection
  customers: ProviderCustomers
  onCustomerReplaced: (event: CustomerReplaced) => void
}

/** Stripe's id of the account's customer. Two nodes that make it at once make one; so do two that find it deleted. */
export async function requireCustomer(options: CustomerOptions, customerId: string): Promise<string> {
  const { connection, customers, onCustomerReplaced } = options
  const known = await customers.find(STRIPE, customerId)
  if (known === undefined) {
    return await customers.keep(STRIPE, customerId, await makeCustomer(connection, customerId, undefined))
  }
  if (!(await isGone(connection.stripe, known))) return known
  const made = await makeCustomer(connection, customerId, known)
  const { kept, isNew } = await customers.replace(STRIPE, customerId, { gone: known, made })
  if (isNew) onCustomerReplaced({ customerId, gone: known })
  return kept
}

/** A deleted customer can still be read; of another account of Stripe it cannot. No page can be made for either. */
async function isGone(stripe: Stripe, id: string): Promise<boolean> {
  const found = await orMissing(stripe.customers.retrieve(id))
  return found === undefined || found.deleted === true
}

/** `gone`: whose place it takes. Whoever replaces the same one asks with the same key. */
async function makeCustomer(
  { stripe, clock }: Connection,
  customerId: string,
  gone: string | undefined,
): Promise<string> {
  const parts = gone === undefined ? [customerId] : [customerId, gone]
  const { id } = await stripe.customers.create(
    { description: customerId, metadata: { [CUSTOMER]: customerId } },
    { idempotencyKey: idempotencyKey(clock, 'customer', ...parts) },
  )
  return id
}
