/** What readings of the payment provider change, each in one transaction (migrations 046, 053 and 054). */

import type { BillingTransaction, PaidChange, ReadingLog, ReadingTime } from '../billing/ports.ts'
import type { Invoice, Subscription } from '../domain/model.ts'
import type { ChangedRange } from '../domain/subscription.ts'
import { listPacks, listPlans } from './catalogue.ts'
import type { Database, Transaction } from './connection.ts'
import { type InvoiceRow, invoiceOf } from './invoices.ts'
import { type SubscriptionRow, subscriptionOf } from './subscriptions.ts'

export function createReadingLog(db: Database): ReadingLog {
  return {
    async now() {
      const [row] = await db<{ now: ReadingTime }[]>`
        SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS now`
      return row!.now
    },
    // The driver types what a transaction answers by its own rules.
    apply: async <T>(apply: (billing: BillingTransaction) => Promise<T>) => {
      let answer: T | undefined
      await db.begin(async (transaction) => {
        answer = await apply(billingTransaction(transaction))
      })
      return answer as T
    },
  }
}

function billingTransaction(db: Transaction): BillingTransaction {
  return {
    lockCustomer: (customerId) => lockCustomer(db, customerId),
    accountOf: (provider, providerCustomerId) => accountOf(db, provider, providerCustomerId),
    subscription: (subscriptionId) => findSubscription(db, subscriptionId),
    livingSubscriptions: (customerId) => livingSubscriptions(db, customerId),
    currentSubscription: (customerId) => currentSubscription(db, customerId),
    putSubscription: (subscription, begun) => putSubscription(db, subscription, begun),
    invoice: (invoiceId) => findInvoice(db, invoiceId),
    putInvoice: (invoice, begun) => putInvoice(db, invoice, begun),
    cycleCredits: (subscriptionId, periodStart) => cycleCredits(db, subscriptionId, periodStart),
    putCycleCredits: (subscriptionId, cycle) => putCycleCredits(db, subscriptionId, cycle),
    periodAt: (subscriptionId, time) => periodAt(db, subscriptionId, time),
    planChanges: (subscriptionId, periodStart) => planChanges(db, subscriptionId, periodStart),
    addPlanChange: (change) => addPlanChange(db, change),
    sale: (saleId) => findSale(db, saleId),
    beginSale: (...sale) => beginSale(db, ...sale),
    putReturned: (...returned) => putReturned(db, ...returned),
    plans: () => listPlans(db),
    packs: () => listPacks(db),
    async addCredits(customerId, { credits, type, description }) {
      await db`SELECT add_credits(${customerId}, ${credits}, ${type}, ${description})`
    },
    async takeCredits(customerId, { credits, description }) {
      await db`SELECT take_credits(${customerId}, ${credits}, ${description})`
    },
    async setCreditLimit(customerId, credits) {
      await db`UPDATE customers SET credit_limit = ${credits} WHERE customer_id = ${customerId}`
    },
  }
}

async function lockCustomer(db: Transaction, customerId: string): Promise<boolean> {
  const rows = await db`SELECT FROM customers WHERE customer_id = ${customerId} FOR NO KEY UPDATE`
  return rows.length > 0
}

async function accountOf(
  db: Transaction,
  provider: string,
  providerCustomerId: string,
): Promise<string | undefined> {
  const [row] = await db<{ customer_id: string }[]>`
    SELECT customer_id FROM provider_customers
    WHERE provider = ${provider} AND provider_customer_id = ${providerCustomerId}
    UNION ALL SELECT customer_id FROM former_provider_customers
    WHERE provider = ${provider} AND provider_customer_id = ${providerCustomerId}`
  return row?.customer_id
}

async function findSubscription(db: Transaction, subscriptionId: string): Promise<Subscription | undefined> {
  const [row] = await db<SubscriptionRow[]>`
    SELECT * FROM subscriptions WHERE subscription_id = ${subscriptionId} FOR UPDATE`
  return row && subscriptionOf(row)
}

async function livingSubscriptions(db: Transaction, customerId: string): Promise<string[]> {
  const rows = await db<{ subscription_id: string }[]>`
    SELECT subscription_id FROM subscriptions
    LEFT JOIN (
      SELECT subscription_id, min(paid_at) AS paid_at FROM invoices
      WHERE customer_id = ${customerId} AND status = 'paid' GROUP BY subscription_id
    ) AS money USING (subscription_id)
    WHERE customer_id = ${customerId}
      AND (status IN ('ACTIVE', 'PAST_DUE') OR (status = 'CANCELLING' AND current_period_end > now()))
    ORDER BY money.paid_at NULLS LAST, created_at, subscription_id`
  return rows.map((row) => row.subscription_id)
}

async function currentSubscription(db: Transaction, customerId: string): Promise<string | undefined> {
  const [row] = await db<{ subscription_id: string }[]>`
    SELECT subscription_id FROM subscriptions WHERE customer_id = ${customerId}
    ORDER BY status IN ('ACTIVE', 'PAST_DUE') DESC, status = 'CANCELLING' DESC, created_at DESC, subscription_id DESC
    LIMIT 1`
  return row?.subscription_id
}

async function putSubscription(
  db: Transaction,
  it: Parameters<BillingTransaction['putSubscription']>[0],
  begun: ReadingTime,
): Promise<boolean> {
  const written = await db`
    INSERT INTO subscriptions AS s (subscription_id, customer_id, plan_id, status, current_period_start,
      current_period_end, auto_renew, created_at, read_at)
    VALUES (${it.subscriptionId}, ${it.customerId}, ${it.planId}, ${it.status},
      ${new Date(it.currentPeriodStart)}, ${new Date(it.currentPeriodEnd)}, ${it.autoRenew},
      ${new Date(it.createdAt)}, ${begun}::text::timestamptz)
    ON CONFLICT (subscription_id) DO UPDATE SET plan_id = excluded.plan_id, status = excluded.status,
      current_period_start = excluded.current_period_start,
      current_period_end = excluded.current_period_end, auto_renew = excluded.auto_renew,
      read_at = excluded.read_at,
      answered_status = CASE WHEN excluded.status IN ('CANCELLING', 'CANCELLED') THEN s.answered_status END
    WHERE s.read_at <= excluded.read_at AND s.status <> 'CANCELLED'
    RETURNING subscription_id`
  return written.length > 0
}

async function findInvoice(db: Transaction, invoiceId: string): Promise<Invoice | undefined> {
  const [row] = await db<InvoiceRow[]>`SELECT * FROM invoices WHERE invoice_id = ${invoiceId} FOR UPDATE`
  return row && invoiceOf(row)
}

async function putInvoice(db: Transaction, it: Invoice, begun: ReadingTime): Promise<boolean> {
  const written = await db`
    INSERT INTO invoices AS i (invoice_id, customer_id, subscription_id, status, amount, paid_at, read_at, created_at)
    VALUES (${it.invoiceId}, ${it.customerId}, ${it.subscriptionId}, ${it.status}, ${it.amount},
      ${it.paidAt === null ? null : new Date(it.paidAt)}, ${begun}::text::timestamptz, ${new Date(it.createdAt)})
    ON CONFLICT (invoice_id) DO UPDATE SET status = excluded.status, amount = excluded.amount,
      paid_at = excluded.paid_at, read_at = excluded.read_at
    WHERE i.read_at <= excluded.read_at
    RETURNING invoice_id`
  return written.length > 0
}

async function cycleCredits(
  db: Transaction,
  subscriptionId: string,
  periodStart: number,
): Promise<number | undefined> {
  const [row] = await db<{ credits: number }[]>`
    SELECT credits FROM subscription_cycles
    WHERE subscription_id = ${subscriptionId} AND period_start = ${new Date(periodStart)}`
  return row?.credits
}

async function putCycleCredits(
  db: Transaction,
  subscriptionId: string,
  { periodStart, periodEnd, credits }: Parameters<BillingTransaction['putCycleCredits']>[1],
): Promise<void> {
  await db`
    INSERT INTO subscription_cycles (subscription_id, period_start, period_end, credits)
    VALUES (${subscriptionId}, ${new Date(periodStart)}, ${new Date(periodEnd)}, ${credits})
    ON CONFLICT (subscription_id, period_start) DO UPDATE SET period_end = excluded.period_end,
      credits = excluded.credits`
}

async function periodAt(db: Transaction, subscriptionId: string, time: number): Promise<number | undefined> {
  const [row] = await db<{ period_start: Date }[]>`
    SELECT period_start FROM subscription_cycles
    WHERE subscription_id = ${subscriptionId} AND period_start <= ${new Date(time)}
      AND (period_end IS NULL OR period_end > ${new Date(time)})
    ORDER BY period_start DESC LIMIT 1`
  return row?.period_start.getTime()
}

async function planChanges(
  db: Transaction,
  subscriptionId: string,
  periodStart: number,
): Promise<ChangedRange[]> {
  const rows = await db<{ from_credits: number; to_credits: number; changed_at: Date }[]>`
    SELECT from_credits, to_credits, changed_at FROM plan_changes LEFT JOIN credit_sales ON sale_id = invoice_id
    WHERE subscription_id = ${subscriptionId} AND period_start = ${new Date(periodStart)}
      AND (sale_id IS NULL OR returned_credits < credits)`
  return rows.map((row) => ({
    from: row.from_credits,
    to: row.to_credits,
    changedAt: row.changed_at.getTime(),
  }))
}

async function addPlanChange(db: Transaction, it: PaidChange): Promise<void> {
  await db`
    INSERT INTO plan_changes (invoice_id, changed_at, subscription_id, period_start, from_credits, to_credits)
    VALUES (${it.invoiceId}, ${new Date(it.changedAt)}, ${it.subscriptionId}, ${new Date(it.periodStart)},
      ${it.from}, ${it.to})`
}

async function findSale(
  db: Transaction,
  saleId: string,
): Promise<{ credits: number; returnedCredits: number } | undefined> {
  const [row] = await db<{ credits: number; returned_credits: number }[]>`
    SELECT credits, returned_credits FROM credit_sales WHERE sale_id = ${saleId} FOR UPDATE`
  return row && { credits: row.credits, returnedCredits: row.returned_credits }
}

async function beginSale(
  db: Transaction,
  saleId: string,
  customerId: string,
  credits: number,
): Promise<boolean> {
  const begun = await db`
    INSERT INTO credit_sales (sale_id, customer_id, credits) VALUES (${saleId}, ${customerId}, ${credits})
    ON CONFLICT DO NOTHING RETURNING sale_id`
  return begun.length > 0
}

async function putReturned(
  db: Transaction,
  saleId: string,
  returnedCredits: number,
  begun: ReadingTime,
): Promise<boolean> {
  const written = await db`
    UPDATE credit_sales SET returned_credits = ${returnedCredits}, read_at = ${begun}::text::timestamptz
    WHERE sale_id = ${saleId} AND read_at <= ${begun}::text::timestamptz RETURNING sale_id`
  return written.length > 0
}
