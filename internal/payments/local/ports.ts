/**
 * What the local payment provider needs, and what a person asks it over HTTP (docs/architecture/billing.md, "The local
 * provider"). It is for the local instance only: it moves no money.
 */

import type { Currency } from '../../domain/currency.ts'
import type { SubscriptionStatus } from '../../domain/model.ts'

/** Where its one document stands, a JSON object. Every call rejects while Postgres is away. */
export interface LocalPaymentStore<Document> {
  /** undefined: nothing was written yet. */
  read(): Promise<Document | undefined>
  /**
   * Writes what `change` makes of the document, one change after the other, whichever process asks; answers its result. What
   * `change` throws is thrown, and nothing is written.
   */
  change<T>(change: (document: Document | undefined) => { document: Document; result: T }): Promise<T>
}

/** An event on its way: the body of a request, and its headers with names in lower case. */
export interface SignedNotification {
  readonly body: Uint8Array
  readonly headers: Record<string, string>
}

export const paymentKinds = ['plan', 'pack'] as const
export type PaymentKind = (typeof paymentKinds)[number]

export const eventKinds = ['subscription.changed', 'invoice.changed', 'pack.changed'] as const
export type EventKind = (typeof eventKinds)[number]

export const outcomes = ['pays', 'pays-late', 'fails', 'abandons'] as const
export type CheckoutOutcome = (typeof outcomes)[number]

export const subscriptionActions = ['cancel', 'cancel-now', 'resume', 'fail-payment', 'change-plan'] as const
export type SubscriptionAction = (typeof subscriptionActions)[number]

export const changeOutcomes = ['pays', 'pays-late', 'fails'] as const
/** What becomes of the difference that another plan costs. */
export type ChangeOutcome = (typeof changeOutcomes)[number]

export const disputeOutcomes = ['lost', 'won'] as const
export type DisputeOutcome = (typeof disputeOutcomes)[number]

/** `pending`: the money comes later. */
export type CheckoutState = 'open' | 'paid' | 'pending' | 'failed' | 'expired'

/** `planId` of a plan, `packId` of a pack. */
export interface CheckoutView {
  checkoutId: string
  kind: PaymentKind
  planId?: string
  packId?: string
  customerId: string
  amountInCents: number
  currency: Currency
  state: CheckoutState
}

/** `refunded`: all of it. `disputed`: some of it is held, or lost by a dispute. `failed`: no money comes any more. */
export type PaymentViewState = 'open' | 'paid' | 'refunded' | 'disputed' | 'failed'

/** `paymentId` is also the id of the invoice. */
export interface PaymentView {
  paymentId: string
  kind: PaymentKind
  amountInCents: number
  refundedInCents: number
  state: PaymentViewState
}

export interface SubscriptionView {
  subscriptionId: string
  state: SubscriptionStatus
}

/** `at`: Unix ms by the provider's clock. */
export interface EventView {
  eventId: string
  kind: EventKind
  customerId: string
  subscriptionId?: string
  at: number
}

/**
 * What a person does at the provider. Each change answers once its events were told, and after 10 s at the latest; what is
 * left is told later. Refusals are thrown as LocalRefusal, and change nothing.
 */
export interface LocalPayments {
  checkout(checkoutId: string): Promise<CheckoutView>
  /** `amountInCents`: with a coupon, 0 to 1,000,000,000; undefined: the price. */
  choose(
    checkoutId: string,
    choice: { outcome: CheckoutOutcome; amountInCents?: number },
  ): Promise<CheckoutView>
  /** Moves the provider's clock, 1 to 400 days. Answers what it says then, Unix ms. */
  advance(days: number): Promise<{ now: number }>
  /** `planId` and `outcome` (default: `pays`): of `change-plan`. Answers whose it is, too. */
  act(
    subscriptionId: string,
    asked: { action: SubscriptionAction; planId?: string; outcome?: ChangeOutcome },
  ): Promise<{ customerId: string; subscription: SubscriptionView }>
  /** Newest first; both empty for a customer that it does not know. */
  list(customerId: string): Promise<{ payments: PaymentView[]; subscriptions: SubscriptionView[] }>
  /** undefined: all that is left. */
  refund(
    paymentId: string,
    amountInCents: number | undefined,
  ): Promise<{ customerId: string; payment: PaymentView }>
  /** All that is left is held, told, and after that kept (`lost`) or given back (`won`). */
  dispute(paymentId: string, outcome: DisputeOutcome): Promise<{ customerId: string; payment: PaymentView }>
  /** At most 1,000, the oldest first. */
  events(): Promise<EventView[]>
  /** Tells it again, whatever was answered before. */
  repeat(eventId: string): Promise<EventView>
}

/** `invalid`: the request is wrong, and the message names the field. `conflict`: not in this state; has a code. */
export type RefusalKind = 'invalid' | 'unknown' | 'conflict'

/** Why the provider does not do what it is asked. */
export class LocalRefusal extends Error {
  override readonly name = 'LocalRefusal'
  readonly kind: RefusalKind
  /** For programs; undefined: none. */
  readonly code: string | undefined

  constructor(kind: RefusalKind, message: string, code?: string) {
    super(message)
    this.kind = kind
    this.code = code
  }
}
