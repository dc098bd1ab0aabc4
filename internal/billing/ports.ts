/**
 * What billing needs of Postgres (docs/architecture/protocol.md, "Credits") and of a payment provider. Every call
 * rejects while they are away.
 */

import type { CreditTransaction, Invoice, Plan, Subscription, SubscriptionStatus } from '../domain/model.ts'
import type { ChangedRange } from '../domain/subscription.ts'
import type { Catalogue, CataloguePack, CataloguePlan } from './catalogue.ts'
import type { ObjectReference, Reading } from './readings.ts'

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
 * The payment provider (docs/architecture/billing.md, "A payment provider"). Every call but `changes` settles within
 * 10 s, and rejects when the provider fails or does not answer. Each may be made again, and then answers as the first
 * time. What happens at the provider is told by notifications, which only name an object: it is read anew.
 */
export interface PaymentProvider {
  /** Lower-case letters: the last part of the path of its notifications, and the key of its rows. */
  readonly name: string
  /** Whether plans and packs without an `offerId` can be bought, too. */
  readonly sellsWithoutOffer: boolean
  /**
   * Where this customer buys the offer, an absolute URL; undefined: the provider has no such offer. What is bought there
   * names the customer, and the plan or the pack. An open checkout of the same offer is answered again, a completed one
   * never.
   */
  checkoutUrl(checkout: Checkout): Promise<string | undefined>
  /** Where the customer manages what he has bought, an absolute URL; undefined: the provider does not know him. */
  portalUrl(customerId: string): Promise<string | undefined>
  /** No renewal after the period that runs. Also resolves when that, or the end, was agreed before. */
  cancelAtPeriodEnd(cancellation: Cancellation): Promise<void>
  /** The end, now. Also resolves when it has ended before. */
  cancelNow(cancellation: Cancellation): Promise<void>
  /**
   * The end, now, of a subscription that should not be: all that was paid for it goes back. Resolves with the reasons of
   * refunds that the provider refuses for good; none: all of it went back. It has ended all the same.
   */
  cancelAndRefund(subscriptionId: string): Promise<readonly string[]>
  /**
   * The object as it stands now. undefined: it is not of this installation, or does not exist. Rejects with
   * UnusableReadingError, with the owner, when it names a customer and says what cannot be used, such as an offer that
   * the catalogue does not have.
   */
  read(reference: ObjectReference): Promise<Reading | undefined>
  /** What may have changed since then (Unix ms), in any order, also repeatedly. */
  changes(since: number): AsyncIterable<ObjectReference>
  /**
   * The objects that a notification names; none when it is not about what is sold here. Rejects with
   * BadNotificationError when the notification is not the provider's.
   */
  notification(notification: Notification): Promise<ObjectReference[]>
}

/** A request of the provider as it came. */
export interface Notification {
  readonly body: Uint8Array
  /** `name` in lower case. */
  header(name: string): string | undefined
}

/** `offerId` is null only with a provider that sells without offers. */
export type Checkout = { customerId: string; offerId: string | null } & (
  | { buys: 'plan'; planId: string }
  | { buys: 'pack'; packId: string }
)

export interface Cancellation {
  subscriptionId: string
  /** In the customer's words. */
  reason: string | null
}

/** Whether the provider moves money, or only shows what it would do. */
export type ProviderMode = 'test' | 'live'

/**
 * Which customer of the provider an account is: one, made once. `provider`: its name. What writes rejects when the
 * database is of another mode of the provider.
 */
export interface ProviderCustomers {
  find(provider: string, customerId: string): Promise<string | undefined>
  /** Keeps the first that is told, and answers it. */
  keep(provider: string, customerId: string, providerCustomerId: string): Promise<string>
  /**
   * Puts `made` in the place of `gone`, whose payments stay the account's. Answers the customer that the account has then;
   * `isNew` is false when somebody had replaced `gone` before.
   */
  replace(
    provider: string,
    customerId: string,
    change: { gone: string; made: string },
  ): Promise<{ kept: string; isNew: boolean }>
}

/** How far the changes of a provider were read, by Postgres' clock alone: clocks of nodes differ. */
export interface ProviderSweeps {
  /** Since all changes until then were read, ms; undefined: they never were. */
  age(provider: string): Promise<number | undefined>
  /**
   * Runs `sweep` when the last complete one is at least `afterMs` old, and no other node sweeps at the moment. When it
   * answers true, all changes until its beginning count as read; when it rejects or answers false, none. `since`: until
   * when they were read before, Unix ms; undefined: they never were.
   */
  once(
    provider: string,
    afterMs: number,
    sweep: (since: number | undefined) => Promise<boolean>,
  ): Promise<void>
}

/** Applies what was read at the provider. */
export interface ReadingLog {
  /** Postgres' clock, in its own words: what is read from now on is at least as new. */
  now(): Promise<ReadingTime>
  apply<T>(apply: (billing: BillingTransaction) => Promise<T>): Promise<T>
}

/** When a reading began, by Postgres' clock, in ISO 8601: compared there only, for it is finer than a millisecond. */
export type ReadingTime = string & { readonly __brand: 'ReadingTime' }

/** What readings change, inside one transaction. */
export interface BillingTransaction {
  /** Before all that follows: what changes a customer goes one after the other. false: no such customer. */
  lockCustomer(customerId: string): Promise<boolean>
  /** The account that this customer of the provider is; undefined: none. */
  accountOf(provider: string, providerCustomerId: string): Promise<string | undefined>
  subscription(subscriptionId: string): Promise<Subscription | undefined>
  /** Those of the customer that are ACTIVE, PAST_DUE, or CANCELLING in a period that lasts: the first that was paid, or else begun, first. */
  livingSubscriptions(customerId: string): Promise<string[]>
  /** The subscription that an invoice of a pack names: the one that counts, else none. */
  currentSubscription(customerId: string): Promise<string | undefined>
  /** Writes it unless a reading that began later was written before; false then. */
  putSubscription(subscription: Subscription & { createdAt: number }, begun: ReadingTime): Promise<boolean>
  invoice(invoiceId: string): Promise<Invoice | undefined>
  /** As `putSubscription`. */
  putInvoice(invoice: Invoice, begun: ReadingTime): Promise<boolean>
  /** The credits of the plan that this period was paid for; undefined: it was not paid. `periodStart`: Unix ms. */
  cycleCredits(subscriptionId: string, periodStart: number): Promise<number | undefined>
  /** Times are Unix ms. */
  putCycleCredits(
    subscriptionId: string,
    cycle: { periodStart: number; periodEnd: number; credits: number },
  ): Promise<void>
  /** The start of the period that was paid for and lasts then; undefined: there is none. Unix ms. */
  periodAt(subscriptionId: string, time: number): Promise<number | undefined>
  /** Changes of the plan in this period that were paid for, and whose money did not go back. */
  planChanges(subscriptionId: string, periodStart: number): Promise<ChangedRange[]>
  /** Each of an invoice once. */
  addPlanChange(change: PaidChange): Promise<void>
  /** undefined: nothing was granted for it. */
  sale(saleId: string): Promise<Sale | undefined>
  /** Notes what was granted for a payment. false: it was noted before. */
  beginSale(saleId: string, customerId: string, credits: number): Promise<boolean>
  /** Notes how many credits of a sale are taken back, unless a reading that began later did; false then. */
  putReturned(saleId: string, returnedCredits: number, begun: ReadingTime): Promise<boolean>
  plans(): Promise<CataloguePlan[]>
  packs(): Promise<CataloguePack[]>
  /** Adds credits (at least 1) as one transaction. A debt is paid from them, as a second one of type `refund`. */
  addCredits(
    customerId: string,
    entry: { credits: number; type: 'grant' | 'purchase' | 'refund'; description: string },
  ): Promise<void>
  /** Takes credits (at least 1) as one transaction of type `refund`. What is spent becomes a debt. */
  takeCredits(customerId: string, entry: { credits: number; description: string }): Promise<void>
  setCreditLimit(customerId: string, credits: number): Promise<void>
}

/** `from` less than `to`. Times are Unix ms. */
export interface PaidChange extends ChangedRange {
  invoiceId: string
  subscriptionId: string
  periodStart: number
}

/** What one payment brought: an invoice of a plan's period, or a checkout of a pack. */
export interface Sale {
  credits: number
  returnedCredits: number
}
