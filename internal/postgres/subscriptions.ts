/** Subscriptions (docs/reference/api.md, "Subscriptions"): one SQL operation a function. */

import type { SubscriptionStore } from '../billing/ports.ts'
import type { Plan, Subscription, SubscriptionStatus } from '../domain/model.ts'
import { type PlanRow, planOf } from './catalogue.ts'
import type { Database, Transaction } from './connection.ts'

export interface SubscriptionRow {
  subscription_id: string
  customer_id: string
  plan_id: string
  status: SubscriptionStatus
  current_period_start: Date
  current_period_end: Date
  auto_renew: boolean
  answered_status: SubscriptionStatus | null
}

export function createSubscriptionStore(db: Database): SubscriptionStore {
  return {
    current: (customerId) => currentSubscription(db, customerId),
    end: (subscriptionId, change) =>
      db.begin((transaction) => endSubscription(transaction, subscriptionId, change)),
  }
}

export function subscriptionOf(row: SubscriptionRow): Subscription {
  return {
    subscriptionId: row.subscription_id,
    customerId: row.customer_id,
    planId: row.plan_id,
    status: row.status,
    currentPeriodStart: row.current_period_start.getTime(),
    currentPeriodEnd: row.current_period_end.getTime(),
    autoRenew: row.auto_renew,
  }
}

async function currentSubscription(
  db: Database,
  customerId: string,
): Promise<{ subscription: Subscription; plan: Plan } | undefined> {
  const [row] = await db<(SubscriptionRow & PlanRow)[]>`
    SELECT * FROM subscriptions JOIN plans USING (plan_id) WHERE customer_id = ${customerId}
    ORDER BY CASE status WHEN 'ACTIVE' THEN 0 WHEN 'PAST_DUE' THEN 0 WHEN 'CANCELLING' THEN 1
      WHEN 'PENDING' THEN 2 ELSE 3 END, created_at DESC, subscription_id DESC
    LIMIT 1`
  return row && { subscription: subscriptionOf(row), plan: planOf(row) }
}

async function endSubscription(
  db: Transaction,
  subscriptionId: string,
  { from, to, reason }: Parameters<SubscriptionStore['end']>[1],
): Promise<{ changed: boolean; subscription: Subscription }> {
  const [found] = await db<SubscriptionRow[]>`
    SELECT * FROM subscriptions WHERE subscription_id = ${subscriptionId} FOR UPDATE`
  if (found === undefined) throw new Error(`there is no subscription ${subscriptionId}`)
  // A reading may have told of the provider's yes before this answer: the first that asked for it still succeeds.
  const isOurs = found.status === to && found.answered_status !== to
  if (!isOurs && !from.includes(found.status)) return { changed: false, subscription: subscriptionOf(found) }
  const [ended] = await db<SubscriptionRow[]>`
    UPDATE subscriptions SET status = ${to}, answered_status = ${to}, auto_renew = false, read_at = clock_timestamp(),
      cancel_reason = coalesce(${reason}::text, cancel_reason)
    WHERE subscription_id = ${subscriptionId} RETURNING *`
  return { changed: true, subscription: subscriptionOf(ended!) }
}
