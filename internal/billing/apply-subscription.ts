/** A subscription as it was read at the provider, into our rows. */

import { isPaid, renews, upgradeCredits } from '../domain/subscription.ts'
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
  const plan = await planOf(billing, reading.planId)
  const written = await billing.putSubscription(
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
  const raised = written && (await upgrade(billing, reading, plan, begun))
  const living = await billing.livingSubscriptions(customerId)
  return { raised, ...(living.length > 1 && { living }) }
}

/** Once for each better plan of a period, however often it is told and however often the plan goes up and down. */
async function upgrade(
  billing: BillingTransaction,
  reading: SubscriptionReading,
  plan: CataloguePlan,
  begun: ReadingTime,
): Promise<boolean> {
  const { subscriptionId, customerId, currentPeriodStart: periodStart } = reading
  if (!isPaid(reading.status)) return false
  const from = await billing.cycleCredits(subscriptionId, periodStart)
  const to = plan.creditsPerCycle
  if (from === undefined || to <= from) return false
  const credits = upgradeCredits({
    from,
    to,
    periodStart,
    periodEnd: reading.currentPeriodEnd,
    changedAt: reading.planChangedAt ?? Date.parse(begun),
  })
  await billing.putCycleCredits(subscriptionId, periodStart, to)
  await billing.setCreditLimit(customerId, to)
  if (credits === 0) return false
  await billing.addCredits(customerId, { credits, type: 'grant', description: `Change to plan ${plan.name}` })
  return true
}

export async function planOf(billing: BillingTransaction, planId: string): Promise<CataloguePlan> {
  const plan = (await billing.plans()).find((each) => each.planId === planId)
  if (plan === undefined) throw new UnusableReadingError(`there is no plan ${planId}`)
  return plan
}
