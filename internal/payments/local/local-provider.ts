/**
 * The payment provider of the local instance (docs/architecture/billing.md, "The local provider"): it moves no money, needs no
 * network, and has a clock of its own. Its document stands in Postgres, so all processes of one `npm start` share it.
 */

import type { Cancellation, Checkout, PaymentProvider, ProviderCustomers } from '../../billing/ports.ts'
import type { ObjectReference } from '../../billing/readings.ts'
import type { Clock, Randomness } from '../../runtime/clock.ts'
import { withDeadline } from '../../runtime/deadline.ts'
import { chooseOutcome, openCheckout } from './checkouts.ts'
import { changed, checkoutOf, type Draft, MAX_EVENTS, subscriptionOf } from './draft.ts'
import { tellAgain, untold } from './events.ts'
import { beginDispute, refund, refundRest } from './money-back.ts'
import type {
  ChangeOutcome,
  LocalPaymentStore,
  LocalPayments,
  SignedNotification,
  SubscriptionAction,
} from './ports.ts'
import { LocalRefusal } from './ports.ts'
import { itemOf, type LocalCatalogue, otherPlan } from './prices.ts'
import {
  changesSince,
  checkoutView,
  eventView,
  paymentView,
  readingOf,
  subscriptionView,
} from './readings.ts'
import { verified } from './signature.ts'
import { emptyState, type LocalState, type LocalSubscription } from './state.ts'
import {
  cancelAtPeriodEnd,
  changePlan,
  endSubscription,
  failNext,
  type PricedPlan,
  resume,
} from './subscriptions.ts'
import { Telling } from './telling.ts'
import { advance, catchUp } from './time.ts'

export interface LocalProviderOptions {
  readonly store: LocalPaymentStore<LocalState>
  readonly catalogue: LocalCatalogue
  /** Where it keeps which customer of its own an account is. */
  readonly customers: ProviderCustomers
  /** The address of this process, such as `http://127.0.0.1:8080`. */
  readonly baseUrl: () => string
  /** Hands an event to whoever takes the provider's notifications. true: acknowledged. */
  readonly deliver: (notification: SignedNotification) => Promise<boolean>
  readonly clock: Clock
  readonly randomness: Randomness
  /** Events could not be told; they will be with the next change, or with the sweep of the next start. */
  readonly onProblem: (error: unknown) => void
}

export interface LocalProvider extends PaymentProvider, LocalPayments {}

/** The name of the provider: of its rows, and of the path of its notifications. */
export const LOCAL_PROVIDER = 'local'
export const LOCAL_PAYMENTS_PATH = '/local/payments'
/** What a person asked answers after this time, ms, also when events are left to tell. */
const ANSWER_MS = 10_000

export function createLocalProvider(options: LocalProviderOptions): LocalProvider {
  const { store, catalogue, customers, baseUrl, deliver, clock, randomness, onProblem } = options
  const newId = (prefix: string) => `${prefix}_${hex(randomness, 12)}`
  const surroundings = () => ({ now: clock.now(), newId })
  const telling = new Telling({ store, deliver, clock, surroundings, onProblem })

  async function state(): Promise<LocalState> {
    return (await store.read()) ?? emptyState('')
  }

  /** What time has brought comes before the change, and what that makes possible behind it. `hasNews`: there are events to tell. */
  function change<T>(work: (draft: Draft) => T): Promise<{ result: T; hasNews: boolean }> {
    return store.change((document) =>
      changed(document ?? emptyState(hex(randomness, 32)), surroundings(), (draft) => {
        catchUp(draft)
        const result = work(draft)
        catchUp(draft)
        return { result, hasNews: untold(draft.state).length > 0 }
      }),
    )
  }

  /** For billing, which is told in the background: what tells may itself have asked for the change. */
  async function changeForBilling<T>(work: (draft: Draft) => T): Promise<T> {
    const { result, hasNews } = await change(work)
    if (hasNews) void telling.round()
    return result
  }

  /** For a person, who sees what came of it. */
  async function changeForPerson<T>(work: (draft: Draft) => T): Promise<T> {
    const { result, hasNews } = await change(work)
    if (hasNews) await withDeadline(clock, ANSWER_MS, telling.round()).catch(onProblem)
    return result
  }

  async function providerCustomerOf(customerId: string): Promise<string> {
    const known = await customers.find(LOCAL_PROVIDER, customerId)
    return known ?? customers.keep(LOCAL_PROVIDER, customerId, newId('cus'))
  }

  return {
    name: LOCAL_PROVIDER,
    sellsWithoutOffer: true,

    async checkoutUrl(wanted: Checkout) {
      const item = await itemOf(catalogue, wanted)
      if (item === undefined) return undefined
      const { customerId } = wanted
      const customer = { customerId, providerCustomerId: await providerCustomerOf(customerId) }
      const checkoutId = await changeForBilling((draft) => openCheckout(draft, customer, item).checkoutId)
      return `${baseUrl()}${LOCAL_PAYMENTS_PATH}/checkouts/${checkoutId}`
    },

    async portalUrl(customerId) {
      const { checkouts, subscriptions } = await state()
      const isKnown = [...checkouts, ...subscriptions].some((each) => each.customerId === customerId)
      return isKnown ? `${baseUrl()}${LOCAL_PAYMENTS_PATH}/customers/${customerId}` : undefined
    },

    cancelAtPeriodEnd: ({ subscriptionId }: Cancellation) =>
      changeForBilling((draft) => cancelAtPeriodEnd(draft, subscriptionOf(draft.state, subscriptionId))),

    cancelNow: ({ subscriptionId }: Cancellation) =>
      changeForBilling((draft) => endSubscription(draft, subscriptionOf(draft.state, subscriptionId))),

    async cancelAndRefund(subscriptionId) {
      await changeForBilling((draft) => {
        endSubscription(draft, subscriptionOf(draft.state, subscriptionId))
        for (const payment of draft.state.payments) {
          if (payment.subscriptionId === subscriptionId) refundRest(draft, payment)
        }
      })
      return []
    },

    read: async (reference) => readingOf(await state(), reference),

    /** Also tells what was not acknowledged, as when a process died over it. */
    async *changes(since): AsyncGenerator<ObjectReference> {
      yield* await changeForBilling((draft) => changesSince(draft.state, since))
    },

    async notification(notification) {
      const secret = (await store.read())?.secret
      return [verified(secret, notification, clock.now())]
    },

    checkout: async (checkoutId) => checkoutView(checkoutOf(await state(), checkoutId)),

    async choose(checkoutId, choice) {
      return checkoutView(await changeForPerson((draft) => chooseOutcome(draft, checkoutId, choice)))
    },

    async advance(days) {
      return changeForPerson((draft) => {
        advance(draft, days)
        return { now: draft.at }
      })
    },

    async act(subscriptionId, { action, planId, outcome }) {
      const found = subscriptionOf(await state(), subscriptionId)
      const plan = planId === undefined ? undefined : await otherPlan(catalogue, found, planId)
      const subscription = await changeForPerson((draft) => {
        const subscription = subscriptionOf(draft.state, subscriptionId)
        actOn(draft, subscription, { action, plan, outcome })
        return subscription
      })
      return { customerId: subscription.customerId, subscription: subscriptionView(subscription) }
    },

    async list(customerId) {
      const { payments, subscriptions } = await state()
      const own = <T extends { customerId: string }>(all: T[]) =>
        all.filter((each) => each.customerId === customerId).toReversed()
      return {
        payments: own(payments).map(paymentView),
        subscriptions: own(subscriptions).map(subscriptionView),
      }
    },

    async refund(paymentId, amountInCents) {
      const payment = await changeForPerson((draft) => refund(draft, paymentId, amountInCents))
      return { customerId: payment.customerId, payment: paymentView(payment) }
    },

    async dispute(paymentId, outcome) {
      const { customerId } = await changeForPerson((draft) => beginDispute(draft, paymentId, outcome))
      const { payments } = await state()
      return { customerId, payment: paymentView(payments.find((each) => each.paymentId === paymentId)!) }
    },

    events: async () => (await state()).events.slice(-MAX_EVENTS).map(eventView),

    async repeat(eventId) {
      return eventView(await changeForPerson((draft) => tellAgain(draft, eventId)))
    },
  }
}

interface Asked {
  action: SubscriptionAction
  plan: PricedPlan | undefined
  outcome: ChangeOutcome | undefined
}

/** Throws LocalRefusal. */
function actOn(draft: Draft, subscription: LocalSubscription, { action, plan, outcome }: Asked): void {
  if (action === 'resume') resume(draft, subscription)
  else if (action === 'fail-payment') failNext(draft, subscription)
  else if (action === 'change-plan') {
    if (plan === undefined) throw new LocalRefusal('invalid', 'planId is required')
    changePlan(draft, subscription, plan, outcome)
  } else {
    if (subscription.endedAt !== null) throw hasEnded()
    if (action === 'cancel') cancelAtPeriodEnd(draft, subscription)
    else endSubscription(draft, subscription)
  }
}

function hasEnded(): LocalRefusal {
  return new LocalRefusal('conflict', 'Subscription has ended', 'subscription_ended')
}

/** So many random bytes. */
function hex(randomness: Randomness, bytes: number): string {
  return Buffer.from(randomness.bytes(bytes)).toString('hex')
}
