/** Invoices (docs/reference/api.md, "Invoices"): one SQL operation a function. */

import type { InvoiceStore } from '../billing/ports.ts'
import type { Invoice, InvoiceStatus } from '../domain/model.ts'
import type { Database } from './connection.ts'

export interface InvoiceRow {
  invoice_id: string
  customer_id: string
  subscription_id: string
  status: InvoiceStatus
  amount: number
  paid_at: Date | null
  created_at: Date
}

export function createInvoiceStore(db: Database): InvoiceStore {
  return {
    async list(customerId, limit) {
      const rows = await db<InvoiceRow[]>`
        SELECT * FROM invoices WHERE customer_id = ${customerId}
        ORDER BY created_at DESC, invoice_id DESC LIMIT ${limit}`
      return rows.map(invoiceOf)
    },
    async find(invoiceId) {
      const [row] = await db<InvoiceRow[]>`SELECT * FROM invoices WHERE invoice_id = ${invoiceId}`
      return row && invoiceOf(row)
    },
  }
}

export function invoiceOf(row: InvoiceRow): Invoice {
  return {
    invoiceId: row.invoice_id,
    customerId: row.customer_id,
    subscriptionId: row.subscription_id,
    status: row.status,
    amount: row.amount,
    paidAt: row.paid_at?.getTime() ?? null,
    createdAt: row.created_at.getTime(),
  }
}
