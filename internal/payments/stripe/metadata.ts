/** What objects at Stripe say of ours: their metadata. Objects without a customer are somebody else's business. */

import { type Owner, UnusableReadingError } from '../../billing/readings.ts'

/** The account; on customers, subscriptions, checkouts and payments. */
export const CUSTOMER = 'penstock_customer'
/** What a checkout sells, as the catalogue names it. A subscription's plan follows from its price, which may change. */
export const PLAN = 'penstock_plan'
export const PACK = 'penstock_pack'
/** The price that a checkout was made for: its id. */
export const PRICE = 'penstock_price'
/** On configurations of the billing portal: a digest of what they allow. */
export const PORTAL = 'penstock_portal'

type Metadata = Readonly<Record<string, string>> | null | undefined

/** The account that an object names; undefined: it is not of this installation. */
export function customerOf(metadata: Metadata): string | undefined {
  return textIn(metadata, CUSTOMER)
}

/** The pack that a checkout sells; undefined: it is none of a pack, or not ours. */
export function packOf(metadata: Metadata): string | undefined {
  return customerOf(metadata) === undefined ? undefined : textIn(metadata, PACK)
}

/** As `read`. What cannot be used says whose it is: another installation may sell by the same account of Stripe. */
export async function ownedBy<T>(owner: Owner, read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw error instanceof UnusableReadingError ? new UnusableReadingError(error.message, owner) : error
  }
}

function textIn(metadata: Metadata, name: string): string | undefined {
  return metadata && Object.hasOwn(metadata, name) ? metadata[name] || undefined : undefined
}
