/**
 * Stripe as the payment provider (docs/architecture/billing.md, "Stripe"). Importing this loads Stripe's package: only an
 * installation that is configured for it does.
 */

import type { CataloguePack, CataloguePlan } from '../../billing/catalogue.ts'
import type { PaymentProvider, ProviderCustomers } from '../../billing/ports.ts'
import type { ObjectReference, Reading } from '../../billing/readings.ts'
import type { Clock } from '../../runtime/clock.ts'
import { systemClock } from '../../runtime/system-clock.ts'
import { cancelAndRefund, cancelAtPeriodEnd, cancelNow } from './cancellation.ts'
import { changesSince } from './changes.ts'
import { checkoutUrl } from './checkout.ts'
import { bounded, type Connection, connect } from './client.ts'
import { type CustomerReplaced, STRIPE } from './customers.ts'
import { readInvoice } from './invoice-reading.ts'
import { referencesOfNotification } from './notification.ts'
import { readPack } from './pack-reading.ts'
import { portalUrl } from './portal.ts'
import { type Reader, readSubscription } from './subscription-reading.ts'

export interface StripeOptions {
  /** `sk_…` or `rk_…`; its mode, live or test, is the mode of everything. */
  key: string
  /** `whsec_…`: one, or two while one replaces another. Without any, every notification is refused. */
  webhookSecrets: readonly string[]
  /** Where checkout and portal return to, an absolute URL. */
  returnUrl: string
  catalogue: { plans(): Promise<CataloguePlan[]>; packs(): Promise<CataloguePack[]> }
  customers: ProviderCustomers
  /** An account has a new customer at Stripe, for its old one is deleted there. */
  onCustomerReplaced: (event: CustomerReplaced) => void
  /** Default: the machine's. */
  clock?: Clock
  /** Another address than Stripe's own, for tests. */
  origin?: string
}

/** Every call but `changes` settles within 9 s. */
export function createStripeProvider(options: StripeOptions): PaymentProvider {
  const { key, webhookSecrets, returnUrl, catalogue, customers, clock = systemClock(), origin } = options
  const connection = connect({ key, clock, origin })
  const { stripe } = connection
  const { onCustomerReplaced } = options
  const plans = () => catalogue.plans()
  const settle = <T>(work: Promise<T>): Promise<T> => bounded(clock, work)
  return {
    name: STRIPE,
    sellsWithoutOffer: false,
    checkoutUrl: (checkout) =>
      settle(checkoutUrl({ connection, customers, onCustomerReplaced, returnUrl }, checkout)),
    portalUrl: (customerId) => settle(portalUrl({ connection, customers, plans, returnUrl }, customerId)),
    cancelAtPeriodEnd: (cancellation) => settle(cancelAtPeriodEnd(stripe, cancellation)),
    cancelNow: (cancellation) => settle(cancelNow(stripe, cancellation)),
    cancelAndRefund: (subscriptionId) => settle(cancelAndRefund(connection, subscriptionId)),
    read: (reference) => settle(readObject(connection, { stripe, plans }, reference)),
    changes: (since) => changesSince(connection, since),
    notification: (notification) =>
      settle(referencesOfNotification(connection, webhookSecrets, notification)),
  }
}

function readObject(
  { stripe }: Connection,
  reader: Reader,
  { kind, id }: ObjectReference,
): Promise<Reading | undefined> {
  if (kind === 'subscription') return readSubscription(reader, id)
  return kind === 'invoice' ? readInvoice(reader, id) : readPack(stripe, id)
}
