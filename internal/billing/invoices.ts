/** Invoices (docs/reference/api.md, "Invoices"). Refusals are thrown as ServiceError. */

import { ServiceError } from '../domain/errors.ts'
import type { Invoice } from '../domain/model.ts'
import type { Principal } from '../domain/principal.ts'
import type { InvoiceStore } from './ports.ts'

export interface Invoices {
  /** Newest first. `limit` from 1 to 500. */
  list(principal: Principal, page: { limit: number }): Promise<Invoice[]>
  /** 403 invoice of another customer, 404 unknown. */
  read(principal: Principal, invoiceId: string): Promise<Invoice>
}

export function createInvoices({ invoices }: { invoices: InvoiceStore }): Invoices {
  return {
    list: ({ customerId }, { limit }) => invoices.list(customerId, limit),
    async read({ customerId }, invoiceId) {
      const invoice = await invoices.find(invoiceId)
      if (invoice === undefined) throw new ServiceError('invoiceNotFound')
      if (invoice.customerId !== customerId) throw new ServiceError('invoiceForeign')
      return invoice
    },
  }
}
