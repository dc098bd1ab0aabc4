import { closed, count, instant, oneOf, orNull, text } from './shape.ts'

/** docs/reference/api.md, "Invoices". */

export const invoiceSchema = closed('Invoice', 'An invoice of a subscription.', {
  invoiceId: text('The invoice.', { minLength: 1 }),
  customerId: text('Its customer.', { minLength: 1 }),
  subscriptionId: text('Its subscription.', { minLength: 1 }),
  status: oneOf('What became of it.', ['open', 'paid', 'void', 'refunded'], 'InvoiceStatus'),
  amount: count('Cents.'),
  paidAt: orNull(instant('When it was paid')),
  createdAt: instant('When it was issued'),
})
