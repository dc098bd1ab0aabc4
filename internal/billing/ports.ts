/**
 * What billing needs of Postgres (docs/architecture/protocol.md, "Credits") and of a payment provider. Every call
 * rejects while they are away.
 */

import type { CreditTransaction, Invoice, Plan, Subscription, SubscriptionStatus } from '../domain/model.ts'
import type { KnownSubscription } from '../domain/subscription.ts'
import type { Catalogue, CataloguePack, CataloguePlan } from './catalogue.ts'

/** docs/reference/api.md, "Credits". Credits are integers; `lastResetAt` in Unix ms. */
export interface CreditAccount {
  customerId: string
  credits: number
  creditLimit: number
  /** Since the start of the current UTC month. */
  creditsUsedThisMonth: number
  lastResetAt: number
}

export interface CreditAccounts {
  read(customerId: string): Promise<CreditAccount | undefined>
  /** Adds credits as one `grant` transaction and answers the new balance; undefined: no such customer. */
  grant(customerId: string, credits: number, description: string): Promise<number | undefined>
  /**
   * Newest first, at most `limit`. Consumption counts as the newest of its minute, which its row sums up;
   * `balanceAfter` is counted back from the present balance, so that each is the next one's plus `amount`.
   */
  transactions(customerId: string, limit: number): Promise<CreditTransaction[]>
}

/**
 * One group commit of a node for a customer. Statements of one node and customer are numbered from 1, the
 * next one is sent after the answer of the last. Columns are parallel arrays.
 */
export interface CreditStatement {
  readonly customerId: string
  readonly number: number
  /** Distinct buffer uids; the rest names them by index from 1. */
  readonly buffers: readonly string[]
  /** Charges in the order of their arrival, equal neighbours as one run. */
  readonly runs: { readonly buffer: number[]; readonly credits: number[]; readonly count: number[] }
  /** Parallel to `buffers`: what is credited back, and for how many items. */
  readonly refunds: { readonly credits: number[]; readonly items: number[] }
  /** Parallel to `buffers`: what was paid in advance since the last statement, and for how many items. */
  readonly spent: { readonly credits: number[]; readonly items: number[] }
  /** Credits of charges whose items are stored for good. */
  readonly settled: number
  /** Credits that the node held in advance and holds no longer. */
  readonly giveBack: number
  /** Credits that it wants in advance, at most. */
  readonly take: number
}

export interface CreditAnswer {
  /** false: the node was closed and its credits refunded; it must not go on. */
  open: boolean
  /** How many charges were paid, from the first. */
  granted: number
  /** What is free afterwards: the balance without what nodes hold in advance. */
  balance: number
  /** Credits that the node holds in advance from now on, in addition. */
  taken: number
  /** What other nodes hold in advance; they give it back when they need it no longer, or the balance is low. */
  heldByOthers: number
}

export interface CreditStatements {
  /** Registers the node; repeatable. */
  open(boot: string): Promise<void>
  /**
   * Applies the statement, or answers as the first time when its number was applied before: it may be
   * repeated until it is answered. A repetition may leave the charges out, not the rest: `granted` then
   * says whether the first one had paid them. Rejects within seconds when the outcome is unknown.
   */
  apply(boot: string, statement: CreditStatement): Promise<CreditAnswer>
  /** Closes the node and refunds what it has not settled; repeatable. */
  close(boot: string): Promise<void>
}

/** What is on sale. Rows outlive the catalogue file that brought them: what it no longer has is not active. */
export interface CatalogueStore {
  /** Makes the stored catalogue this one; several nodes may do it at once. */
  publish(catalogue: Catalogue): Promise<void>
  /** All of them, those that are not active too; smallest first. */
  plans(): Promise<CataloguePlan[]>
  packs(): Promise<CataloguePack[]>
}

export interface SubscriptionStore {
  /** The one that counts: active, else being cancelled, else pending, else cancelled; of several the newest. */
  current(customerId: string): Promise<{ subscription: Subscription; plan: Plan } | undefined>
  /**
   * Writes what the provider has agreed to, if the subscription is still in a state of `from`; it will not
   * renew. Answers it as it stands then. Rejects when there is no such subscription.
   */
  end(
    subscriptionId: string,
    change: { from: readonly SubscriptionStatus[]; to: SubscriptionStatus; reason: string | null },
  ): Promise<{ changed: boolean; subscription: Subscription }>
}

export interface InvoiceStore {
  /** Newest first, at most `limit`. */
  list(customerId: string, limit: number): Promise<Invoice[]>
  /** Of any customer: the caller checks whose it is. */
  find(invoiceId: string): Promise<Invoice | undefined>
}

/**
 * The payment provider. Every call rejects within 10 s when it fails or is not answered; each may be made
 * again, and then answers as the first time. What happens at the provider comes back as events
 * (`provider-events.ts`).
 */
export interface PaymentProvider {
  /**
   * Where this customer buys the offer, an absolute URL; undefined: the provider has no such offer. Events
   * about what is bought there name the customer, and the plan or the pack.
   */
  checkoutUrl(checkout: Checkout): Promise<string | undefined>
  /** No renewal after the period that runs. Also resolves when that, or the end, was agreed before. */
  cancelAtPeriodEnd(cancellation: Cancellation): Promise<void>
  /** The end, now. Also resolves when it has ended before. */
  cancelNow(cancellation: Cancellation): Promise<void>
}

export type Checkout = { customerId: string; offerId: string } & (
  | { buys: 'plan'; planId: string }
  | { buys: 'pack'; packId: string }
)

export interface Cancellation {
  subscriptionId: string
  /** In the customer's words. */
  reason: string | null
}

export interface ProviderEventLog {
  /**
   * Runs `apply` in one transaction with the mark of the event. false: it was applied before, and nothing
   * ran. When `apply` rejects, nothing has happened and the event may be told again.
   */
  once(
    event: { eventId: string; kind: string; at: number },
    apply: (billing: BillingTransaction) => Promise<void>,
  ): Promise<boolean>
}

/** What events change, inside their transaction. */
export interface BillingTransaction {
  /** The customer of a subscription, undefined: there is none. */
  ownerOf(subscriptionId: string): Promise<string | undefined>
  /** Before all that follows: the events of a customer go one after the other. false: no such customer. */
  lockCustomer(customerId: string): Promise<boolean>
  subscription(subscriptionId: string): Promise<KnownSubscription | undefined>
  putSubscription(subscription: KnownSubscription): Promise<void>
  /** Notes that the credits of this period are granted; false: they were before. `periodStart`: Unix ms. */
  beginCycle(subscriptionId: string, periodStart: number): Promise<boolean>
  invoice(invoiceId: string): Promise<KnownInvoice | undefined>
  putInvoice(invoice: KnownInvoice): Promise<void>
  plans(): Promise<CataloguePlan[]>
  packs(): Promise<CataloguePack[]>
  /** Adds credits (at least 1) as one transaction. */
  addCredits(
    customerId: string,
    entry: { credits: number; type: 'grant' | 'purchase'; description: string },
  ): Promise<void>
  setCreditLimit(customerId: string, credits: number): Promise<void>
}

/** An invoice with the provider's time of the newest event that was applied, Unix ms. */
export interface KnownInvoice extends Invoice {
  toldAt: number
}
