/** Which customer of Stripe an account is: one, made once. */

import type { ProviderCustomers } from '../../billing/ports.ts'
import { type Connection, idempotencyKey } from './client.ts'
import { CUSTOMER } from './metadata.ts'

/** The name of this provider: in routes, and the key of rows. */
export const STRIPE = 'stripe'

/** Stripe's id of the account's customer. Two nodes that make it at once make one. */
export async function requireCustomer(
  { stripe, clock }: Connection,
  customers: ProviderCustomers,
  customerId: string,
): Promise<string> {
  const known = await customers.find(STRIPE, customerId)
  if (known !== undefined) return known
  const made = await stripe.customers.create(
    { description: customerId, metadata: { [CUSTOMER]: customerId } },
    { idempotencyKey: idempotencyKey(clock, 'customer', customerId) },
  )
  return await customers.keep(STRIPE, customerId, made.id)
}
