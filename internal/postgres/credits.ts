/** Balances and grants (docs/reference/api.md, "Credits"). */

import type { PendingQuery, Row } from 'postgres'
import type { CreditAccount, CreditAccounts } from '../billing/ports.ts'
import type { Database, Queryable } from './connection.ts'
import { listTransactions } from './credit-transactions.ts'

export function createCreditAccounts(db: Database): CreditAccounts {
  return {
    read: (customerId) => readCredits(db, customerId),
    grant: (customerId, credits, description) => grantCredits(db, customerId, credits, description),
    transactions: (customerId, limit) => listTransactions(db, customerId, limit),
  }
}

/** Of `customers`: what was used since the start of the UTC month, also before the month's first charge resets it. */
export function usedThisMonth(db: Queryable): PendingQuery<Row[]> {
  return db`CASE WHEN last_reset_at < date_trunc('month', now(), 'UTC') THEN 0 ELSE credits_used_this_month END`
}

async function readCredits(db: Database, customerId: string): Promise<CreditAccount | undefined> {
  const [row] = await db<{ credits: number; credit_limit: number; used: number; last_reset_at: Date }[]>`
    SELECT credits, credit_limit, ${usedThisMonth(db)} AS used,
      greatest(last_reset_at, date_trunc('month', now(), 'UTC')) AS last_reset_at
    FROM customers WHERE customer_id = ${customerId}`
  if (row === undefined) return undefined
  return {
    customerId,
    credits: row.credits,
    creditLimit: row.credit_limit,
    creditsUsedThisMonth: row.used,
    lastResetAt: row.last_reset_at.getTime(),
  }
}

async function grantCredits(
  db: Database,
  customerId: string,
  credits: number,
  description: string,
): Promise<number | undefined> {
  const [row] = await db<{ balance: number | null }[]>`
    SELECT add_credits(${customerId}, ${credits}, 'grant', ${description}) AS balance`
  return row?.balance ?? undefined
}
