/** What events of the payment provider change, each in the transaction of its mark (migration 035). */

import type { BillingTransaction, KnownInvoice, ProviderEventLog } from '../billing/ports.ts'
import type { KnownSubscription } from '../domain/subscription.ts'
import { listPacks, listPlans } from './catalogue.ts'
import type { Database, Transaction } from './connection.ts'
import { type InvoiceRow, invoiceOf } from './invoices.ts'
import { type SubscriptionRow, subscriptionOf } from './subscriptions.ts'

export function createProviderEventLog(db: Database): ProviderEventLog {
  return {
    once: ({ eventId, kind, at }, apply) =>
      db.begin(async (transaction) => {
        // A second telling waits here until the first is committed or undone.
        const marked = await transaction`
          INSERT INTO provider_events (event_id, kind, told_at) VALUES (${eventId}, ${kind}, ${new Date(at)})
          ON CONFLICT DO NOTHING RETURNING event_id`
        if (marked.length === 0) return false
        await apply(billingTransaction(transaction))
        return true
      }),
  }
}

function billingTransaction(db: Transaction): BillingTransaction {
  return {
    ownerOf: (subscriptionId) => ownerOf(db, subscriptionId),
    lockCustomer: (customerId) => lockCustomer(db, customerId),
    subscription: (subscriptionId) => findSubscription(db, subscriptionId),
    putSubscription: (subscription) => putSubscription(db, subscription),
    beginCycle: (subscriptionId, periodStart) => beginCycle(db, subscriptionId, periodStart),
    invoice: (invoiceId) => findInvoice(db, invoiceId),
    putInvoice: (invoice) => putInvoice(db, invoice),
    plans: () => listPlans(db),
    packs: () => listPacks(db),
    addCredits: (customerId, entry) => addCredits(db, customerId, entry),
    async setCreditLimit(customerId, credits) {
      await db`UPDATE customers SET credit_limit = ${credits} WHERE customer_id = ${customerId}`
    },
  }
}

async function ownerOf(db: Transaction, subscriptionId: string): Promise<string | undefined> {
  const [row] = await db<{ customer_id: string }[]>`
    SELECT customer_id FROM subscriptions WHERE subscription_id = ${subscriptionId}`
  return row?.customer_id
}

async function lockCustomer(db: Transaction, customerId: string): Promise<boolean> {
  const rows = await db`SELECT FROM customers WHERE customer_id = ${customerId} FOR NO KEY UPDATE`
  return rows.length > 0
}

async function findSubscription(
  db: Transaction,
  subscriptionId: string,
): Promise<KnownSubscription | undefined> {
  const [row] = await db<SubscriptionRow[]>`
    SELECT * FROM subscriptions WHERE subscription_id = ${subscriptionId} FOR UPDATE`
  return row && { ...subscriptionOf(row), toldAt: row.told_at.getTime() }
}

async function putSubscription(db: Transaction, it: KnownSubscription): Promise<void> {
  await db`
    INSERT INTO subscriptions (subscription_id, customer_id, plan_id, status, current_period_start,
      current_period_end, auto_renew, told_at)
    VALUES (${it.subscriptionId}, ${it.customerId}, ${it.planId}, ${it.status},
      ${new Date(it.currentPeriodStart)}, ${new Date(it.currentPeriodEnd)}, ${it.autoRenew},
      ${new Date(it.toldAt)})
    ON CONFLICT (subscription_id) DO UPDATE SET plan_id = excluded.plan_id, status = excluded.status,
      current_period_start = excluded.current_period_start,
      current_period_end = excluded.current_period_end, auto_renew = excluded.auto_renew,
      told_at = excluded.told_at`
}

async function beginCycle(db: Transaction, subscriptionId: string, periodStart: number): Promise<boolean> {
  const begun = await db`
    INSERT INTO subscription_cycles (subscription_id, period_start)
    VALUES (${subscriptionId}, ${new Date(periodStart)}) ON CONFLICT DO NOTHING RETURNING subscription_id`
  return begun.length > 0
}

async function findInvoice(db: Transaction, invoiceId: string): Promise<KnownInvoice | undefined> {
  const [row] = await db<InvoiceRow[]>`SELECT * FROM invoices WHERE invoice_id = ${invoiceId} FOR UPDATE`
  return row && { ...invoiceOf(row), toldAt: row.told_at.getTime() }
}

async function putInvoice(db: Transaction, it: KnownInvoice): Promise<void> {
  await db`
    INSERT INTO invoices (invoice_id, customer_id, subscription_id, status, amount, paid_at, told_at, created_at)
    VALUES (${it.invoiceId}, ${it.customerId}, ${it.subscriptionId}, ${it.status}, ${it.amount},
      ${it.paidAt === null ? null : new Date(it.paidAt)}, ${new Date(it.toldAt)}, ${new Date(it.createdAt)})
    ON CONFLICT (invoice_id) DO UPDATE SET status = excluded.status, amount = excluded.amount,
      paid_at = excluded.paid_at, told_at = excluded.told_at`
}

async function addCredits(
  db: Transaction,
  customerId: string,
  { credits, type, description }: Parameters<BillingTransaction['addCredits']>[1],
): Promise<void> {
  await db`
    WITH raised AS (
      UPDATE customers SET credits = credits + ${credits} WHERE customer_id = ${customerId} RETURNING credits
    )
    INSERT INTO credit_transactions (customer_id, amount, type, description, balance_after)
    SELECT ${customerId}, ${credits}, ${type}, ${description}, credits FROM raised`
}
