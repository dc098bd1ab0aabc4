/** The objects of ours that an event of Stripe is about. */

import type Stripe from 'stripe'
import type { ObjectReference } from '../../billing/readings.ts'
import { idOf, orMissing } from './client.ts'
import type { EventObject } from './events.ts'
import { subscriptionOf } from './invoice-reading.ts'
import { customerOf, packOf } from './metadata.ts'

/**
 * None: it is not about what is sold here. A subscription comes before its invoice, which needs it. Asks Stripe where a
 * refund or a dispute belongs, and rejects when it does not answer.
 */
export async function referencesOf(stripe: Stripe, object: EventObject): Promise<ObjectReference[]> {
  switch (object.kind) {
    case 'subscription':
      return customerOf(object.metadata) === undefined ? [] : [{ kind: 'subscription', id: object.id }]
    case 'invoice':
      return ofInvoice(object)
    case 'checkout.session':
      return ofSession(object)
    case 'charge':
      return await ofPayment(stripe, object.paymentIntent)
    case 'refund':
    case 'dispute':
      return await ofPayment(stripe, object.paymentIntent ?? (await paymentOfCharge(stripe, object.charge)))
  }
}

/** The invoice of a pack is none of a subscription: the pack's checkout tells all of it. */
function ofInvoice({ id, subscription, subscriptionMetadata }: EventObject): ObjectReference[] {
  if (subscription === null) return []
  if (subscriptionMetadata !== null && customerOf(subscriptionMetadata) === undefined) return []
  return [
    { kind: 'subscription', id: subscription },
    { kind: 'invoice', id },
  ]
}

function ofSession({ id, metadata, subscription, invoice }: EventObject): ObjectReference[] {
  if (customerOf(metadata) === undefined) return []
  if (packOf(metadata) !== undefined) return [{ kind: 'pack', id }]
  if (subscription === null) return []
  return [
    { kind: 'subscription', id: subscription },
    ...(invoice === null ? [] : [{ kind: 'invoice' as const, id: invoice }]),
  ]
}

async function paymentOfCharge(stripe: Stripe, charge: string | null): Promise<string | null> {
  if (charge === null) return null
  return idOf((await orMissing(stripe.charges.retrieve(charge)))?.payment_intent) ?? null
}

/** What a payment paid for. Payments that are not of a checkout or an invoice were not made here. */
async function ofPayment(stripe: Stripe, paymentIntent: string | null): Promise<ObjectReference[]> {
  if (paymentIntent === null) return []
  const [sessions, payments] = await Promise.all([
    stripe.checkout.sessions.list({ payment_intent: paymentIntent, limit: 100 }),
    stripe.invoicePayments.list({
      payment: { type: 'payment_intent', payment_intent: paymentIntent },
      limit: 100,
      expand: ['data.invoice'],
    }),
  ])
  const packs = sessions.data.filter(({ metadata }) => packOf(metadata) !== undefined)
  const invoices = payments.data.flatMap(({ invoice }) =>
    typeof invoice === 'string' || invoice.deleted || subscriptionOf(invoice) === undefined ? [] : [invoice],
  )
  return [
    ...packs.map(({ id }) => ({ kind: 'pack' as const, id })),
    ...invoices.map(({ id }) => ({ kind: 'invoice' as const, id })),
  ]
}
