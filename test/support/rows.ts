/** Rows that tests of the ledger, the dead letter queue and the projection start from, and what they read back. */
import { randomUUID } from 'node:crypto'
import type { Database } from '../../internal/postgres/connection.ts'

export interface TestBuffer {
  uid: string
  bufferId: string
  projectId: string
  customerId: string
}

/** A new customer with this balance, granted. */
export async function insertCustomer(db: Database, credits = 0): Promise<string> {
  const customerId = `customer-${randomUUID()}`
  await db`INSERT INTO customers (customer_id, name, credits) VALUES (${customerId}, 'Test', ${credits})`
  if (credits > 0) {
    await db`INSERT INTO credit_transactions (customer_id, amount, type, description, balance_after)
      VALUES (${customerId}, ${credits}, 'grant', 'Initial credits', ${credits})`
  }
  return customerId
}

/** A new buffer in a project of its own. */
export async function insertBuffer(
  db: Database,
  customerId: string,
  options: { dlqPauseThreshold?: number } = {},
): Promise<TestBuffer> {
  const uid = randomUUID()
  const buffer = { uid, bufferId: `buffer-${uid}`, projectId: `project-${uid}`, customerId }
  const config = { name: 'Test', dlqPauseThreshold: options.dlqPauseThreshold ?? 3 }
  await db`INSERT INTO projects (project_id, customer_id, name)
    VALUES (${buffer.projectId}, ${customerId}, 'Test')`
  await db`INSERT INTO buffers (uid, buffer_id, customer_id, project_id, config)
    VALUES (${uid}, ${buffer.bufferId}, ${customerId}, ${buffer.projectId}, ${db.json(config)})`
  return buffer
}

export async function balanceOf(db: Database, customerId: string): Promise<number> {
  const [row] = await db<{ credits: number }[]>`
    SELECT credits FROM customers WHERE customer_id = ${customerId}`
  return row?.credits ?? Number.NaN
}

/** What is charged and neither settled nor refunded, over all nodes. */
export async function unsettledOf(db: Database, customerId: string): Promise<number> {
  const [row] = await db<{ unsettled: number }[]>`
    SELECT coalesce(sum(unsettled), 0)::bigint AS unsettled FROM settlements WHERE customer_id = ${customerId}`
  return row?.unsettled ?? Number.NaN
}

export interface BufferState {
  enabled: boolean
  count: number
  version: number
}

export async function bufferState(db: Database, uid: string): Promise<BufferState> {
  const [row] = await db<BufferState[]>`
    SELECT enabled, consecutive_dlq_count AS count, version FROM buffers WHERE uid = ${uid}`
  if (row === undefined) throw new Error(`no buffer ${uid}`)
  return row
}
