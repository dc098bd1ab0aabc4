/** What is on sale, subscriptions and invoices, placed by SQL as a payment provider's events would. */
import { randomUUID } from 'node:crypto'
import type { Invoice, Plan, Subscription } from '../../internal/domain/model.ts'
import type { Database } from '../../internal/postgres/connection.ts'

export const DAY_MS = 86_400_000

export async function insertPlan(
  db: Database,
  fields: Partial<Plan> & { offerId?: string } = {},
): Promise<Plan> {
  const { offerId = null, ...rest } = fields
  const plan: Plan = {
    planId: `plan-${randomUUID()}`,
    name: 'Plan',
    priceInCents: 1_000,
    currency: 'BRL',
    prices: { BRL: 1_000 },
    creditsPerCycle: 100,
    isActive: true,
    ...rest,
  }
  await db`INSERT INTO plans (plan_id, name, price_in_cents, currency, prices, credits_per_cycle, is_active, offer_id)
    VALUES (${plan.planId}, ${plan.name}, ${plan.priceInCents}, ${plan.currency}, ${db.json(plan.prices)},
      ${plan.creditsPerCycle}, ${plan.isActive}, ${offerId})`
  return plan
}

export async function insertPack(
  db: Database,
  fields: { packId: string; credits?: number; isActive?: boolean; offerId?: string },
): Promise<void> {
  const { packId, credits = 50, isActive = true, offerId = null } = fields
  await db`INSERT INTO credit_packs (pack_id, credits, is_active, offer_id)
    VALUES (${packId}, ${credits}, ${isActive}, ${offerId})`
}

/** ACTIVE, in the middle of a period of two days, unless `fields` says otherwise. */
export async function insertSubscription(
  db: Database,
  fields: Partial<Subscription> & { customerId: string; planId: string; createdAt?: number },
): Promise<Subscription> {
  const { createdAt = Date.now(), ...rest } = fields
  const subscription: Subscription = {
    subscriptionId: `sub_${randomUUID()}`,
    status: 'ACTIVE',
    currentPeriodStart: Date.now() - DAY_MS,
    currentPeriodEnd: Date.now() + DAY_MS,
    autoRenew: true,
    ...rest,
  }
  await db`INSERT INTO subscriptions (subscription_id, customer_id, plan_id, status, current_period_start,
      current_period_end, auto_renew, created_at)
    VALUES (${subscription.subscriptionId}, ${subscription.customerId}, ${subscription.planId},
      ${subscription.status}, ${new Date(subscription.currentPeriodStart)},
      ${new Date(subscription.currentPeriodEnd)}, ${subscription.autoRenew}, ${new Date(createdAt)})`
  return subscription
}

export async function insertInvoice(
  db: Database,
  fields: Partial<Invoice> & { customerId: string; subscriptionId: string },
): Promise<Invoice> {
  const invoice: Invoice = {
    invoiceId: `in_${randomUUID()}`,
    status: 'open',
    amount: 1_000,
    paidAt: null,
    createdAt: Date.now(),
    ...fields,
  }
  await db`INSERT INTO invoices (invoice_id, customer_id, subscription_id, status, amount, paid_at, created_at)
    VALUES (${invoice.invoiceId}, ${invoice.customerId}, ${invoice.subscriptionId}, ${invoice.status},
      ${invoice.amount}, ${invoice.paidAt === null ? null : new Date(invoice.paidAt)},
      ${new Date(invoice.createdAt)})`
  return invoice
}
