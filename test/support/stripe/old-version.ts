/** Objects as API versions before 2025-03-31 show them: periods, subscriptions and payments stand in other places. */

type Shown = Record<string, unknown>

/** Changes what it is given, and all in it. `priceOf`: the whole price of an id; `paymentOf`: of an invoice. */
export function inOldVersion(
  shown: unknown,
  priceOf: (id: string) => unknown,
  paymentOf: (invoiceId: string) => unknown,
): unknown {
  if (typeof shown !== 'object' || shown === null) return shown
  const object = shown as Shown
  for (const value of Object.values(object)) inOldVersion(value, priceOf, paymentOf)
  if (object.object === 'subscription') movePeriod(object)
  if (object.object === 'invoice') moveParent(object, paymentOf)
  if (object.object === 'line_item') moveLine(object, priceOf)
  return object
}

function movePeriod(subscription: Shown): void {
  const [item] = (subscription.items as { data: Shown[] }).data
  subscription.current_period_start = item?.current_period_start
  subscription.current_period_end = item?.current_period_end
  delete item?.current_period_start
  delete item?.current_period_end
}

function moveParent(invoice: Shown, paymentOf: (invoiceId: string) => unknown): void {
  const parent = invoice.parent as {
    subscription_details?: { subscription: unknown; metadata: unknown }
  } | null
  invoice.subscription = parent?.subscription_details?.subscription ?? null
  invoice.subscription_details = parent?.subscription_details
    ? { metadata: parent.subscription_details.metadata }
    : null
  invoice.payment_intent = paymentOf(String(invoice.id)) ?? null
  delete invoice.parent
  delete invoice.payments
}

function moveLine(line: Shown, priceOf: (id: string) => unknown): void {
  const parent = line.parent as {
    subscription_item_details?: { proration: boolean } | null
    invoice_item_details?: { proration: boolean; proration_details: unknown } | null
  } | null
  const pricing = line.pricing as { price_details?: { price: string } } | null
  if (parent === undefined) return
  const item = parent?.invoice_item_details
  line.type = item ? 'invoiceitem' : 'subscription'
  line.proration = item?.proration ?? parent?.subscription_item_details?.proration ?? false
  line.proration_details = item?.proration_details ?? null
  line.price = pricing?.price_details ? priceOf(pricing.price_details.price) : null
  delete line.parent
  delete line.pricing
}
