import type { Invoice } from '../../domain/model.ts'
import type { Principal } from '../../domain/principal.ts'
import { limit } from './fields.ts'
import { type Route, route } from './route.ts'

/** The use case of invoices that these rows call. */
export interface InvoicesService {
  /** Newest first. */
  list(principal: Principal, page: { limit: number }): Promise<Invoice[]>
  /** 403 foreign, 404 unknown. */
  read(principal: Principal, invoiceId: string): Promise<Invoice>
}

/** docs/reference/api.md, "Invoices". */
export function invoiceRoutes(invoices: InvoicesService): Route[] {
  return [list(invoices), read(invoices)]
}

function list(invoices: InvoicesService): Route {
  return route<unknown, { limit: number }, unknown>({
    method: 'GET',
    path: '/v1/admin/invoices',
    operationId: 'listInvoices',
    summary: 'List invoices',
    action: 'read',
    query: { limit: limit(50) },
    answers: { status: 200, schema: 'Invoice', array: true },
    errors: [],
    handler: async ({ principal, query }) => ({
      status: 200,
      body: await invoices.list(principal, { limit: query.limit }),
    }),
  })
}

function read(invoices: InvoicesService): Route {
  return route<{ invoiceId: string }, unknown, unknown>({
    method: 'GET',
    path: '/v1/admin/invoices/{invoiceId}',
    operationId: 'readInvoice',
    summary: 'Read an invoice',
    action: 'read',
    notFound: 'invoiceNotFound',
    answers: { status: 200, schema: 'Invoice' },
    errors: ['invoiceForeign'],
    handler: async ({ principal, params }) => ({
      status: 200,
      body: await invoices.read(principal, params.invoiceId),
    }),
  })
}
