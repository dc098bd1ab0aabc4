/** The checkout of a credit pack at Stripe in our words. */

import type Stripe from 'stripe'
import { type Owner, type PackReading, UnusableReadingError } from '../../billing/readings.ts'
import { type Currency, isCurrency } from '../../domain/currency.ts'
import { idOf, msOf, orMissing } from './client.ts'
import { customerOf, ownedBy, packOf } from './metadata.ts'
import { returnedOf } from './returned.ts'

type Session = Stripe.Checkout.Session

/** A payment that is in one of these states after its checkout was completed has come to nothing. */
const CAME_TO_NOTHING = ['requires_payment_method', 'canceled']

/** undefined: there is none, it sells no pack, or it is not of this installation. */
export async function readPack(stripe: Stripe, id: string): Promise<PackReading | undefined> {
  const expand = ['payment_intent.latest_charge', 'invoice']
  const session = await orMissing(stripe.checkout.sessions.retrieve(id, { expand }))
  if (session === undefined || session.mode !== 'payment') return undefined
  const customerId = customerOf(session.metadata)
  const packId = packOf(session.metadata)
  const providerCustomerId = idOf(session.customer)
  if (customerId === undefined || packId === undefined || providerCustomerId === undefined) return undefined
  const owner = { customerId, providerCustomerId }
  return await ownedBy(owner, () => readOwned(stripe, session, { ...owner, packId }))
}

async function readOwned(
  stripe: Stripe,
  session: Session,
  names: Owner & { packId: string },
): Promise<PackReading> {
  const state = stateOf(session)
  const amount = session.amount_total ?? 0
  const paidBy = state === 'paid' && amount > 0 ? idOf(session.payment_intent) : undefined
  const returned = await returnedOf(stripe, paidBy === undefined ? [] : [{ payment_intent: paidBy }])
  return {
    kind: 'pack',
    checkoutId: session.id,
    ...names,
    state,
    paidInCents: Math.max(0, amount - (session.total_details?.amount_tax ?? 0)),
    currency: currencyOf(session),
    amount,
    returnedInCents: Math.min(returned, amount),
    createdAt: msOf(session.created),
    paidAt: state === 'paid' ? paidAtOf(session) : null,
    // Stripe makes its own invoice after the payment. Ours must be one and the same before and after that.
    invoiceId: session.id,
  }
}

/** A completed checkout is paid only when the money came: with Pix and boleto that may take days. */
function stateOf({ status, payment_status, payment_intent }: Session): PackReading['state'] {
  if (status !== 'complete') return status === 'expired' ? 'expired' : 'open'
  if (payment_status !== 'unpaid') return 'paid'
  const failed = typeof payment_intent === 'object' && CAME_TO_NOTHING.includes(payment_intent?.status ?? '')
  return failed ? 'failed' : 'open'
}

function currencyOf({ id, currency }: Session): Currency {
  const upper = currency?.toUpperCase()
  if (isCurrency(upper)) return upper
  throw new UnusableReadingError(`the checkout ${id} is in the currency ${upper}`)
}

/** Its invoice knows it best, then the payment; what cost nothing was paid when it was made. */
function paidAtOf({ invoice, payment_intent, created }: Session): number {
  const invoicePaidAt =
    typeof invoice === 'object' && invoice !== null ? invoice.status_transitions.paid_at : null
  const charge = typeof payment_intent === 'object' ? payment_intent?.latest_charge : null
  const chargedAt = typeof charge === 'object' && charge !== null ? charge.created : null
  return msOf(invoicePaidAt ?? chargedAt ?? created)
}
