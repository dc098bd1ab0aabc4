/**
 * What an adapter of a payment provider reads there (docs/architecture/billing.md, "A payment provider"). Money is in
 * cents, times are Unix ms by the provider's clock. Identifiers of subscriptions, invoices and checkouts are the
 * provider's own, and follow the rules of ours.
 */

import type { Currency } from '../domain/currency.ts'
import type { SubscriptionStatus } from '../domain/model.ts'

/** Names an object at the provider. `pack`: the checkout of a credit pack. */
export interface ObjectReference {
  readonly kind: 'subscription' | 'invoice' | 'pack'
  readonly id: string
}

export type Reading = SubscriptionReading | InvoiceReading | PackReading

export interface Owner {
  /** Whom the object names: what the checkout was given. */
  customerId: string
  /** Who pays for it at the provider. It counts only when this is the customer's own one. */
  providerCustomerId: string
}

export interface SubscriptionReading extends Owner {
  kind: 'subscription'
  subscriptionId: string
  /** Of the offer that is being paid for at the moment. */
  planId: string
  /** PENDING: not paid yet. CANCELLING: it ends with its period. PAST_DUE: a renewal failed and is tried again. */
  status: SubscriptionStatus
  /** `currentPeriodStart` before `currentPeriodEnd`. */
  currentPeriodStart: number
  currentPeriodEnd: number
  createdAt: number
}

/** An invoice of a subscription. */
export interface InvoiceReading extends Owner {
  kind: 'invoice'
  invoiceId: string
  subscriptionId: string
  status: 'open' | 'paid' | 'void'
  /** With tax, at least 0. */
  amount: number
  /** null: it is not paid. */
  paidAt: number | null
  createdAt: number
  /** The period that it pays for; null: none. */
  cycle: PaidCycle | null
  /** Changes in the middle of a period whose difference it bills. */
  changes: readonly PlanChange[]
  /** What went back, or is held by a dispute that is not won. At most `amount`. */
  returnedInCents: number
}

export interface PaidCycle {
  planId: string
  periodStart: number
  periodEnd: number
  /**
   * Of the price of the period, what is new money, when the rest is money that the provider gives back of another period.
   * `paidInCents` is at most `priceInCents`, which is at least 1. null: all of it, also where it costs nothing.
   */
  newMoney: { paidInCents: number; priceInCents: number } | null
}

/** Another plan for what is left of a period. */
export interface PlanChange {
  /** The plan before. null: the provider does not tell, or the catalogue does not have it. */
  fromPlanId: string | null
  planId: string
  /** Before `periodEnd`. */
  changedAt: number
  periodEnd: number
}

export interface PackReading extends Owner {
  kind: 'pack'
  checkoutId: string
  packId: string
  /** `open` until the money came, also when the customer has chosen a slow way to pay. */
  state: 'open' | 'paid' | 'failed' | 'expired'
  /** Without tax, after coupons: credits are granted in proportion. */
  paidInCents: number
  currency: Currency
  /** With tax. */
  amount: number
  /** Of `amount`: as for an invoice. */
  returnedInCents: number
  createdAt: number
  /** null: it is not paid. */
  paidAt: number | null
  /** Of the invoice that shows it to its customer. */
  invoiceId: string
}

/**
 * The object says what cannot be used (yet). The message says what. `owner`: whom it names, where that can be read. It may
 * be a stranger, as of another installation that sells by the same account of the provider.
 */
export class UnusableReadingError extends Error {
  override readonly name = 'UnusableReadingError'
  readonly owner: Owner | undefined

  constructor(message: string, owner?: Owner) {
    super(message)
    this.owner = owner
  }
}

/** The notification is not the provider's, too old, or not to be understood. The message says why, in one line. */
export class BadNotificationError extends Error {
  override readonly name = 'BadNotificationError'
}
