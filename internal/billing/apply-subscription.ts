/** A subscription as it was read at the provider, into our rows. Its credits come with its invoices. */

import { renews } from '../domain/subscription.ts'
import { type Applied, StrangerError } from './applied.ts'
import type { CataloguePlan } from './catalogue.ts'
import type { BillingTransaction, ReadingTime } from './ports.ts'
import { type SubscriptionReading, UnusableReadingError } from './readings.ts'

export async function applySubscription(
  billing: BillingTransaction,
  reading: SubscriptionReading,
  begun: ReadingTime,
): Promise<Applied> {
  const { subscriptionId, customerId } = reading
  const known = await billing.subscription(subscriptionId)
  if (known !== undefined && known.customerId !== customerId) throw new StrangerError(customerId)
  await planOf(billing, reading.planId)
  await billing.putSubscription(
    {
      subscriptionId,
      customerId,
      planId: reading.planId,
      status: reading.status,
      currentPeriodStart: reading.currentPeriodStart,
      currentPeriodEnd: reading.currentPeriodEnd,
      autoRenew: renews(reading.status),
      createdAt: reading.createdAt,
    },
    begun,
  )
  const living = await billing.livingSubscriptions(customerId)
  return living.length > 1 ? { living } : {}
}

export async function planOf(billing: BillingTransaction, planId: string): Promise<CataloguePlan> {
  const plan = (await billing.plans()).find((each) => each.planId === planId)
  if (plan === undefined) throw new UnusableReadingError(`there is no plan ${planId}`)
  return plan
}
