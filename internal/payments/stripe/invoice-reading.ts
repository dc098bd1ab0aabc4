/** An invoice of a subscription at Stripe in our words. */

import type Stripe from 'stripe'
import { type InvoiceReading, type Owner, UnusableReadingError } from '../../billing/readings.ts'
import { idOf, msOf, orMissing } from './client.ts'
import { paidFor } from './invoice-cycle.ts'
import { customerOf, ownedBy } from './metadata.ts'
import { type PaymentName, returnedOf } from './returned.ts'
import type { Reader } from './subscription-reading.ts'

/** Where API versions before 2025-03-31 have what this one has in `parent` and `payments`. */
export type InvoiceOfAnyVersion = Stripe.Invoice & {
  subscription?: string | { id: string } | null
  subscription_details?: { metadata: Record<string, string> | null } | null
  payment_intent?: string | { id: string } | null
  charge?: string | { id: string } | null
}

/** Of what an invoice's `status` says. A draft is not told to anybody yet. */
const STATUSES: Readonly<Record<string, InvoiceReading['status']>> = {
  open: 'open',
  paid: 'paid',
  void: 'void',
  // Given up: nothing is expected of it any more. It is paid after all when it says so.
  uncollectible: 'void',
}

/** undefined: there is none, it is a draft, it is not of a subscription, or not of this installation. */
export async function readInvoice(reader: Reader, id: string): Promise<InvoiceReading | undefined> {
  const { stripe } = reader
  const invoice = await orMissing(stripe.invoices.retrieve(id, { expand: ['payments'] }))
  if (invoice?.status == null || invoice.status === 'draft') return undefined
  const subscriptionId = subscriptionOf(invoice)
  const providerCustomerId = idOf(invoice.customer)
  if (subscriptionId === undefined || providerCustomerId === undefined) return undefined
  const customerId = customerOf(await metadataOf(stripe, invoice, subscriptionId))
  if (customerId === undefined) return undefined
  const owner = { customerId, providerCustomerId }
  return await ownedBy(owner, () => readOwned(reader, invoice, { ...owner, subscriptionId }))
}

async function readOwned(
  reader: Reader,
  invoice: Stripe.Invoice,
  names: Owner & { subscriptionId: string },
): Promise<InvoiceReading> {
  const amount = Math.max(0, invoice.total)
  const [paid, returned] = await Promise.all([
    paidFor(reader, invoice),
    returnedOf(reader.stripe, amount === 0 ? [] : paymentsOf(invoice)),
  ])
  return {
    kind: 'invoice',
    invoiceId: invoice.id,
    ...names,
    status: statusOf(invoice),
    amount,
    paidAt: paidAtOf(invoice),
    createdAt: msOf(invoice.created),
    ...paid,
    returnedInCents: Math.min(returned, amount),
  }
}

export function subscriptionOf(invoice: Partial<InvoiceOfAnyVersion>): string | undefined {
  return idOf(invoice.parent?.subscription_details?.subscription) ?? idOf(invoice.subscription)
}

/** The subscription's metadata as the invoice keeps them; undefined: it does not. */
export function keptMetadataOf(
  invoice: Partial<InvoiceOfAnyVersion>,
): Readonly<Record<string, string>> | undefined {
  return invoice.parent?.subscription_details?.metadata ?? invoice.subscription_details?.metadata ?? undefined
}

async function metadataOf(stripe: Stripe, invoice: Stripe.Invoice, subscriptionId: string) {
  const kept = keptMetadataOf(invoice)
  if (kept !== undefined) return kept
  return (await orMissing(stripe.subscriptions.retrieve(subscriptionId)))?.metadata
}

function statusOf({ id, status }: Stripe.Invoice): InvoiceReading['status'] {
  const known = status !== null && Object.hasOwn(STATUSES, status) ? STATUSES[status] : undefined
  if (known === undefined) throw new UnusableReadingError(`the invoice ${id} is in a state that is not known`)
  return known
}

function paidAtOf({ status, status_transitions, created }: Stripe.Invoice): number | null {
  return status === 'paid' ? msOf(status_transitions.paid_at ?? created) : null
}

/** Payments that brought money, by the names that refunds and disputes know them by. */
export function paymentsOf(invoice: InvoiceOfAnyVersion): PaymentName[] {
  if (invoice.payments === undefined) {
    return [nameOf(idOf(invoice.payment_intent), idOf(invoice.charge))].flat()
  }
  return invoice.payments.data
    .filter(({ status }) => status === 'paid')
    .flatMap(({ payment }) => nameOf(idOf(payment.payment_intent), idOf(payment.charge)))
}

function nameOf(paymentIntent: string | undefined, charge: string | undefined): PaymentName[] {
  if (paymentIntent !== undefined) return [{ payment_intent: paymentIntent }]
  return charge === undefined ? [] : [{ charge }]
}
