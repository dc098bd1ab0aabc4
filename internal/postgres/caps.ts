/** How much a customer may have of what takes room in every node's memory and in Postgres (docs/reference/api.md, "Limits"). */
import type { OverCap } from '../buffers/ports.ts'
import type { Transaction } from './connection.ts'

/** Infinity: no limit. */
export interface Caps {
  /** Customers that a customer has created (`PENSTOCK_MAX_CUSTOMERS`). */
  readonly customers: number
  /** `PENSTOCK_MAX_PROJECTS`. */
  readonly projects: number
  /** Deleted ones do not count (`PENSTOCK_MAX_BUFFERS`). */
  readonly buffers: number
}

export const NO_CAPS: Caps = {
  customers: Number.POSITIVE_INFINITY,
  projects: Number.POSITIVE_INFINITY,
  buffers: Number.POSITIVE_INFINITY,
}

/**
 * An id stays its customer's for ever, so who makes and deletes would fill the table of ids: so many times as many ids as
 * there may be projects or buffers at once. One that the customer had before can be used again.
 */
export const IDS_RATIO = 10

/** What stands in the way of one more. */
export type { OverCap }

/**
 * Of the customer's creations one of a kind at a time, until the commit: two would both count one less. It is no lock on
 * the row of the customer: that one belongs to the credits.
 */
function lock(transaction: Transaction, kind: string, customerId: string): Promise<unknown> {
  return transaction`SELECT pg_advisory_xact_lock(hashtextextended(${`${kind} ${customerId}`}, 0))`
}

/** null: the customer may have one more project with this id. */
export async function overProjects(
  transaction: Transaction,
  most: number,
  project: { customerId: string; projectId: string },
): Promise<OverCap | null> {
  if (most === Number.POSITIVE_INFINITY) return null
  const { customerId, projectId } = project
  await lock(transaction, 'projects', customerId)
  const [row] = await transaction<{ count: number }[]>`
    SELECT count(*) FROM projects WHERE customer_id = ${customerId}`
  if (row!.count >= most) return 'limit'
  return idsSpent(transaction, 'project', most, { customerId, id: projectId })
}

/** null: the customer may have one more buffer with this id. */
export async function overBuffers(
  transaction: Transaction,
  most: number,
  buffer: { customerId: string; bufferId: string },
): Promise<OverCap | null> {
  if (most === Number.POSITIVE_INFINITY) return null
  const { customerId, bufferId } = buffer
  await lock(transaction, 'buffers', customerId)
  const [row] = await transaction<{ count: number }[]>`
    SELECT count(*) FROM buffers WHERE customer_id = ${customerId} AND deleted_at IS NULL`
  if (row!.count >= most) return 'limit'
  return idsSpent(transaction, 'buffer', most, { customerId, id: bufferId })
}

/** Whether this customer has created as many customers as it may. */
export async function overCustomers(
  transaction: Transaction,
  most: number,
  createdBy: string | null,
): Promise<boolean> {
  if (createdBy === null || most === Number.POSITIVE_INFINITY) return false
  await lock(transaction, 'customers', createdBy)
  const [row] = await transaction<{ count: number }[]>`
    SELECT count(*) FROM customers WHERE created_by = ${createdBy}`
  return row!.count >= most
}

async function idsSpent(
  transaction: Transaction,
  kind: 'project' | 'buffer',
  most: number,
  { customerId, id }: { customerId: string; id: string },
): Promise<'ids-spent' | null> {
  const [row] = await transaction<{ spent: boolean }[]>`
    SELECT (SELECT count(*) FROM taken_ids WHERE customer_id = ${customerId} AND kind = ${kind}) >= ${most * IDS_RATIO}
      AND NOT EXISTS (
        SELECT FROM taken_ids WHERE kind = ${kind} AND id = ${id} AND customer_id = ${customerId}) AS spent`
  return row!.spent ? 'ids-spent' : null
}
