/**
 * What a payment provider tells: where an adapter of one plugs in (docs/architecture/billing.md). The
 * adapter checks that an event is the provider's and translates it; here each is applied once, in one
 * transaction, in whatever order and however often it is told.
 */

import { type Currency, isCurrency } from '../domain/currency.ts'
import { isIdentifier } from '../domain/identifiers.ts'
import type { InvoiceStatus } from '../domain/model.ts'
import { creditsForPayment, priceOf, tierOf } from '../domain/pack-prices.ts'
import { changeBy, isStart, type SubscriptionEvent } from '../domain/subscription.ts'
import type { CataloguePlan } from './catalogue.ts'
import type { BillingTransaction, ProviderEventLog } from './ports.ts'

/** `at`: the provider's time, Unix ms. Identifiers of subscriptions and invoices are the provider's own. */
export type ProviderEvent = { eventId: string; at: number } & (
  | SubscriptionEvent
  | {
      /** An invoice was issued, paid, voided or refunded; `at` of `paid` is when it was paid. */
      kind: 'invoice_changed'
      invoiceId: string
      subscriptionId: string
      status: InvoiceStatus
      /** Cents. */
      amount: number
      /** Unix ms. */
      createdAt: number
    }
  | {
      kind: 'pack_paid'
      customerId: string
      packId: string
      /** At least 0; what differs from the price gives credits in proportion. */
      paidInCents: number
      currency: Currency
    }
)

type EventOf<Kind extends ProviderEvent['kind']> = Extract<ProviderEvent, { kind: Kind }>

/**
 * The event cannot be applied: it names a customer, plan, pack or subscription that is not known (yet), or a
 * field is out of its range. Nothing was changed and the event is not marked: told again later it may succeed.
 */
export class UnusableEventError extends Error {
  override readonly name = 'UnusableEventError'
}

export interface ProviderEvents {
  /** Rejects with UnusableEventError, or when Postgres is away: the provider should tell the event again. */
  receive(event: ProviderEvent): Promise<'applied' | 'repeated'>
}

export interface ProviderEventsOptions {
  log: ProviderEventLog
  /** Told after a balance was raised: the ledger of this node forgets its refusals. */
  credited: (customerId: string) => void
}

export function createProviderEvents({ log, credited }: ProviderEventsOptions): ProviderEvents {
  return {
    async receive(event) {
      checkFields(event)
      const raised: string[] = []
      const applied = await log.once(event, async (billing) => {
        const customerId = await apply(billing, event)
        if (customerId !== undefined) raised.push(customerId)
      })
      if (applied) for (const customerId of raised) credited(customerId)
      return applied ? 'applied' : 'repeated'
    },
  }
}

/** Answers the customer whose balance rose. */
function apply(billing: BillingTransaction, event: ProviderEvent): Promise<string | undefined> {
  switch (event.kind) {
    case 'invoice_changed':
      return changeInvoice(billing, event)
    case 'pack_paid':
      return sellPack(billing, event)
    default:
      return changeSubscription(billing, event)
  }
}

async function changeSubscription(
  billing: BillingTransaction,
  event: SubscriptionEvent,
): Promise<string | undefined> {
  const customerId = isStart(event) ? event.customerId : await ownerOf(billing, event.subscriptionId)
  await lockCustomer(billing, customerId)
  const change = changeBy(event, await billing.subscription(event.subscriptionId))
  if (change === undefined) return undefined
  const { subscription, cycle } = change
  if (subscription.customerId !== customerId) throw unusable('customerId is not that of the subscription')
  // Before the row that refers to it: a plan that is not known is told as such.
  const plan = await planOf(billing, cycle?.planId ?? subscription.planId)
  await billing.putSubscription(subscription)
  if (cycle === null || !(await billing.beginCycle(subscription.subscriptionId, cycle.periodStart))) {
    return undefined
  }
  const credits = plan.creditsPerCycle
  await billing.addCredits(customerId, {
    credits,
    type: 'grant',
    description: `Credits of plan ${plan.name}`,
  })
  if (cycle.periodStart === subscription.currentPeriodStart) await billing.setCreditLimit(customerId, credits)
  return customerId
}

async function planOf(billing: BillingTransaction, planId: string): Promise<CataloguePlan> {
  const plan = (await billing.plans()).find((each) => each.planId === planId)
  if (plan === undefined) throw unusable(`there is no plan ${planId}`)
  return plan
}

async function changeInvoice(
  billing: BillingTransaction,
  event: EventOf<'invoice_changed'>,
): Promise<undefined> {
  const { invoiceId, subscriptionId, status, amount, createdAt, at } = event
  const customerId = await ownerOf(billing, subscriptionId)
  await lockCustomer(billing, customerId)
  const before = await billing.invoice(invoiceId)
  if (before !== undefined && before.subscriptionId !== subscriptionId) {
    throw unusable('subscriptionId is not that of the invoice')
  }
  if (before !== undefined && at < before.toldAt) return undefined
  const paidAt = status === 'paid' ? at : (before?.paidAt ?? null)
  await billing.putInvoice({
    invoiceId,
    customerId,
    subscriptionId,
    status,
    amount,
    paidAt,
    createdAt,
    toldAt: at,
  })
  return undefined
}

/** Sold is sold: neither an inactive pack nor a subscription that ended meanwhile takes back what was paid for. */
async function sellPack(
  billing: BillingTransaction,
  event: EventOf<'pack_paid'>,
): Promise<string | undefined> {
  const { customerId, packId, paidInCents, currency } = event
  await lockCustomer(billing, customerId)
  const pack = (await billing.packs()).find((each) => each.packId === packId)
  if (pack === undefined) throw unusable(`there is no pack ${packId}`)
  const tier = tierOf(pack.credits, await billing.plans(), currency)
  if (tier === undefined) throw unusable(`no plan has a price in ${currency}`)
  const credits = creditsForPayment(pack.credits, priceOf(pack.credits, tier), paidInCents)
  if (credits === 0) return undefined
  await billing.addCredits(customerId, { credits, type: 'purchase', description: `Credit pack ${packId}` })
  return customerId
}

async function lockCustomer(billing: BillingTransaction, customerId: string): Promise<void> {
  if (!(await billing.lockCustomer(customerId))) throw unusable(`there is no customer ${customerId}`)
}

async function ownerOf(billing: BillingTransaction, subscriptionId: string): Promise<string> {
  const customerId = await billing.ownerOf(subscriptionId)
  if (customerId === undefined) throw unusable(`there is no subscription ${subscriptionId}`)
  return customerId
}

const IDENTIFIERS = ['customerId', 'subscriptionId', 'planId', 'invoiceId', 'packId'] as const
const TIMES = ['at', 'createdAt', 'periodStart', 'periodEnd'] as const
/** The last time that a `Date` can hold. */
const MAX_TIME = 8.64e15

function checkFields(event: ProviderEvent): void {
  const fields: Readonly<Record<string, unknown>> = { ...event }
  const { eventId, currency, paidInCents = 0, amount = 0 } = fields
  if (typeof eventId !== 'string' || !/^[!-~]{1,255}$/.test(eventId)) throw unusable('eventId is not usable')
  const badId = IDENTIFIERS.find((name) => name in fields && !isIdentifier(fields[name]))
  if (badId !== undefined) throw unusable(`${badId} is no identifier`)
  const badTime = TIMES.find((name) => name in fields && !isWhole(fields[name], MAX_TIME))
  if (badTime !== undefined) throw unusable(`${badTime} is not in Unix ms`)
  if ('periodStart' in event && event.periodStart >= event.periodEnd) {
    throw unusable('periodEnd must come after periodStart')
  }
  if (!isWhole(paidInCents)) throw unusable('paidInCents is not in cents')
  if (!isWhole(amount)) throw unusable('amount is not in cents')
  if ('currency' in fields && !isCurrency(currency)) throw unusable('currency is not supported')
}

function isWhole(value: unknown, most: number = Number.MAX_SAFE_INTEGER): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= most
}

function unusable(text: string): UnusableEventError {
  return new UnusableEventError(text)
}
