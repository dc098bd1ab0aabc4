/**
 * Takes back what nodes that are gone had charged and not settled (docs/architecture/protocol.md, "Unsettled
 * credits").
 */

import type { Database } from './connection.ts'

/** A customer's credits that came back from one node. */
export interface RefundedNode {
  boot: string
  customerId: string
  credits: number
}

/**
 * Closes the ledgers of all nodes that are gone, one transaction each, and refunds exactly what they had not
 * settled; a node that is alive after all is refused from then on and exits. Any node may call it at any time,
 * several at once too. `isGone` must be certain; `graceMs` spares ledgers that were opened less than that ago.
 */
export async function closeNodes(
  db: Database,
  isGone: (boot: string) => boolean,
  graceMs = 10_000,
): Promise<RefundedNode[]> {
  const old = await db<{ boot: string }[]>`
    SELECT boot FROM ledger_nodes WHERE opened_at <= now() - ${graceMs}::int * interval '1 millisecond'`
  const refunded: RefundedNode[] = []
  for (const { boot } of old) if (isGone(boot)) refunded.push(...(await closeNode(db, boot)))
  return refunded
}

/** Closes the ledger of one node that is gone for certain; nothing when it had none, or was closed before. */
export async function closeNode(db: Database, boot: string): Promise<RefundedNode[]> {
  const rows = await db<{ customer_id: string; credits: number }[]>`
    SELECT customer_id, credits FROM close_ledger_node(${boot})`
  return rows.map(({ customer_id: customerId, credits }) => ({ boot, customerId, credits }))
}
