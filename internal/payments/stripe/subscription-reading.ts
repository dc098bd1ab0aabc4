/** A subscription at Stripe in our words. */

import type Stripe from 'stripe'
import type { CataloguePlan } from '../../billing/catalogue.ts'
import { type SubscriptionReading, UnusableReadingError } from '../../billing/readings.ts'
import type { SubscriptionStatus } from '../../domain/model.ts'
import { idOf, msOf, orMissing } from './client.ts'
import { customerOf, ownedBy } from './metadata.ts'
import { namesOf, planOf, requirePlan } from './offers.ts'

export interface Reader {
  readonly stripe: Stripe
  plans(): Promise<CataloguePlan[]>
}

/** Of these a cancellation may be agreed. */
const LIVING = ['active', 'trialing', 'past_due', 'unpaid']

const STATUSES: Readonly<Record<string, SubscriptionStatus>> = {
  incomplete: 'PENDING',
  incomplete_expired: 'CANCELLED',
  trialing: 'ACTIVE',
  active: 'ACTIVE',
  past_due: 'PAST_DUE',
  // A trial that ended without a means of payment: it goes on once there is one.
  paused: 'PAST_DUE',
  canceled: 'CANCELLED',
  // All tries to renew it failed. It lives on once its customer pays, so it has not ended.
  unpaid: 'PAST_DUE',
}

/** undefined: there is none, or it is not of this installation. */
export async function readSubscription(reader: Reader, id: string): Promise<SubscriptionReading | undefined> {
  const { stripe } = reader
  const [subscription, plans] = await Promise.all([
    orMissing(stripe.subscriptions.retrieve(id)),
    reader.plans(),
  ])
  if (subscription === undefined) return undefined
  const customerId = customerOf(subscription.metadata)
  const providerCustomerId = idOf(subscription.customer)
  if (customerId === undefined || providerCustomerId === undefined) return undefined
  const owner = { customerId, providerCustomerId }
  return await ownedBy(owner, async () => {
    const item = itemOf(subscription, plans)
    return {
      kind: 'subscription',
      subscriptionId: subscription.id,
      ...owner,
      planId: await requirePlan(stripe, plans, namesOf(item.price)),
      status: statusOf(subscription),
      ...periodOf(subscription, item),
      createdAt: msOf(subscription.created),
    }
  })
}

/** The item that is a plan's; others may stand beside it. */
function itemOf(
  { items, id }: Stripe.Subscription,
  plans: readonly CataloguePlan[],
): Stripe.SubscriptionItem {
  const found = items.data.find(({ price }) => planOf(plans, namesOf(price)) !== undefined) ?? items.data[0]
  if (found === undefined) throw new UnusableReadingError(`the subscription ${id} has no items`)
  return found
}

/** `cancel_at` is what the portal and schedules set; it ends the subscription as `cancel_at_period_end` does. */
function statusOf({ id, status, cancel_at, cancel_at_period_end }: Stripe.Subscription): SubscriptionStatus {
  if (LIVING.includes(status) && (cancel_at_period_end || cancel_at)) return 'CANCELLING'
  if (!Object.hasOwn(STATUSES, status)) {
    throw new UnusableReadingError(`the subscription ${id} is in a state that is not known`)
  }
  return STATUSES[status]!
}

/** Periods stand on the items, and in API versions before 2025-03-31 on the subscription. */
function periodOf(
  subscription: Stripe.Subscription & { current_period_start?: number; current_period_end?: number },
  item: Partial<Stripe.SubscriptionItem>,
): { currentPeriodStart: number; currentPeriodEnd: number } {
  const start = item.current_period_start ?? subscription.current_period_start
  const end = item.current_period_end ?? subscription.current_period_end
  if (start === undefined || end === undefined) {
    throw new UnusableReadingError(`the subscription ${subscription.id} has no period`)
  }
  return { currentPeriodStart: msOf(start), currentPeriodEnd: msOf(end) }
}
