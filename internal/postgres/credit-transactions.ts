/** What moved a balance (docs/reference/api.md, "Credits"), in the order of migration 036. */

import type { CreditTransaction } from '../domain/model.ts'
import type { Database } from './connection.ts'

interface TransactionRow {
  transaction_id: string
  amount: number
  type: CreditTransaction['type']
  description: string
  balance_after: number
  created_at: Date
}

/**
 * Newest first. A row of consumption grows during its minute, so the balance that was stored with it would fit
 * no order: each balance is counted back from the present one instead, which costs only the page that is read.
 * Consumption is at least as new as whatever else happened in its minute, so times are in order too.
 */
export async function listTransactions(
  db: Database,
  customerId: string,
  limit: number,
): Promise<CreditTransaction[]> {
  const minute = db`date_bin('1 minute', created_at, '2000-01-01T00:00:00Z'::timestamptz)`
  const sums = db`(CASE type WHEN 'consumption' THEN 1 ELSE 0 END)`
  const order = db`ORDER BY ${minute} DESC, ${sums} DESC, created_at DESC, transaction_id DESC`
  const rows = await db<TransactionRow[]>`
    WITH page AS (
      SELECT transaction_id, amount, type, description, created_at, ${minute} AS bin
      FROM credit_transactions
      WHERE customer_id = ${customerId} ${order} LIMIT ${limit}
    ), balanced AS (
      SELECT *, sum(amount) OVER (${order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newer,
        row_number() OVER (${order}) AS place
      FROM page
    )
    SELECT transaction_id, amount, type, description,
      (credits - coalesce(newer, 0))::bigint AS balance_after,
      CASE type WHEN 'consumption' THEN greatest(balanced.created_at, (
        SELECT created_at FROM credit_transactions
        WHERE customer_id = ${customerId} AND ${minute} = bin AND ${sums} = 0
        ORDER BY created_at DESC LIMIT 1)) ELSE balanced.created_at END AS created_at
    FROM balanced JOIN customers ON customers.customer_id = ${customerId}
    ORDER BY place`
  return rows.map((row) => transactionOf(customerId, row))
}

function transactionOf(customerId: string, row: TransactionRow): CreditTransaction {
  return {
    transactionId: row.transaction_id,
    customerId,
    amount: row.amount,
    type: row.type,
    description: row.description,
    balanceAfter: row.balance_after,
    createdAt: row.created_at.getTime(),
  }
}
