/** Invoices of plans that change, at Stripe (docs/architecture/billing.md, "Credits of a period"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type Stripe from 'stripe'

import { shop } from './shop.ts'

describe('an invoice of a plan that changes, at Stripe', () => {
  const on = shop()

  async function first(choice = {}): Promise<{ subscriptionId: string; invoiceId: string }> {
    const subscriptionId = await on.current.subscribe('pays', choice)
    return { subscriptionId, invoiceId: on.current.latestInvoice(subscriptionId) }
  }

  it('of a plan that changes pays for no period', async () => {
    const { subscriptionId } = await first()
    await on.current.double.advance(10)
    const { currentPeriodEnd: periodEnd } = await on.current.subscription(subscriptionId)
    const { id, created } = await on.current.double.changePlan(subscriptionId, on.current.large.id)
    const invoice = await on.current.invoice(id)
    expect(invoice).to.include({ status: 'paid', cycle: null })
    expect(invoice.amount).to.be.within(3_000, 3_600)
    const change = { fromPlanId: 'starter', planId: 'large', changedAt: created * 1_000, periodEnd }
    expect(invoice.changes).to.deep.equal([change])
    on.current.double.version = 'old'
    expect((await on.current.invoice(id)).changes).to.deep.equal([change])
  })

  for (const outcome of ['pays-late', 'fails'] as const) {
    it(`of a plan that changes says so when its customer ${outcome}`, async () => {
      const { subscriptionId } = await first()
      const { double, large } = on.current
      const { id } = await double.changePlan(subscriptionId, large.id, outcome)
      const read = await on.current.invoice(id)
      expect(read).to.include({ status: outcome === 'fails' ? 'void' : 'open', paidAt: null })
      expect(read.changes).to.have.length(1)
      await double.advance(1)
      expect((await on.current.invoice(id)).status).to.equal(outcome === 'fails' ? 'void' : 'paid')
    })
  }

  /** A line of what is left of the period, as for another item. */
  function proration(invoiceId: string, fields: object, credited = false) {
    const [line] = on.current.double.store.get('invoices', invoiceId).lines.data
    const details = {
      invoice_item: 'ii_1',
      proration: true,
      proration_details: { credited_items: credited ? { invoice: invoiceId, invoice_line_items: [] } : null },
      subscription: null,
    }
    const parent = {
      invoice_item_details: details,
      subscription_item_details: null,
      type: 'invoice_item_details',
    }
    return { ...structuredClone(line!), parent, ...fields } as typeof line & object
  }

  const priced = (price: string, product = 'prod_1') => ({
    price_details: { price, product },
    type: 'price_details',
    unit_amount_decimal: '1',
  })

  it('of several changes has each in order, and those at one time as one', async () => {
    const { subscriptionId } = await first()
    const { double, plans, starter, large } = on.current
    const huge = double.sell({ amounts: { brl: 19_900 }, recurring: 'month' })
    plans.push({ ...plans[0]!, planId: 'huge', offerId: huge.id })
    const { id } = await double.changePlan(subscriptionId, large.id)
    const { lines } = double.store.get('invoices', id)
    const { start, end } = lines.data[0]!.period
    let count = 0
    const line = (offset: number, amount: number, price: Stripe.Price) =>
      proration(id, {
        id: `il_${++count}`,
        amount,
        pricing: priced(price.id),
        period: { start: start + offset, end },
      })
    // From starter over large to huge, then there and back again, then to starter.
    lines.data.push(line(9, -1, large), line(9, -1, starter), line(9, 1, large), line(9, 1, huge))
    lines.data.push(line(7, -1, large), line(7, 1, starter), line(7, -1, starter), line(7, 1, large))
    lines.data.push(line(5, -1, large), line(5, 1, starter))
    const { changes } = await on.current.invoice(id)
    expect(changes.map(({ fromPlanId, planId, changedAt }) => [fromPlanId, planId, changedAt])).to.deep.equal(
      [
        ['starter', 'large', start * 1_000],
        ['large', 'starter', (start + 5) * 1_000],
        ['starter', 'huge', (start + 9) * 1_000],
      ],
    )
  })

  it('of a change knows its lines also where they are of the item of the subscription', async () => {
    const { subscriptionId } = await first()
    const { id } = await on.current.double.changePlan(subscriptionId, on.current.large.id)
    for (const line of on.current.double.store.get('invoices', id).lines.data) {
      const details = line.parent!.invoice_item_details!
      line.parent = {
        invoice_item_details: null,
        subscription_item_details: { ...details, subscription_item: 'si_1' },
        type: 'subscription_item_details',
      }
    }
    const { cycle, changes } = await on.current.invoice(id)
    expect([cycle, changes.length]).to.deep.equal([null, 1])
  })

  it('of a renewal has the changes that it bills, too', async () => {
    const { subscriptionId, invoiceId } = await first()
    const { id } = await on.current.double.changePlan(subscriptionId, on.current.large.id)
    const { lines } = on.current.double.store.get('invoices', invoiceId)
    lines.data.push(...on.current.double.store.get('invoices', id).lines.data)
    const { cycle, changes } = await on.current.invoice(invoiceId)
    expect(cycle).to.include({ planId: 'starter', newMoney: null })
    expect(changes).to.have.length(1)
  })

  it('that was made by hand has the changes that it bills', async () => {
    const { subscriptionId } = await first()
    const { id } = await on.current.double.changePlan(subscriptionId, on.current.large.id)
    on.current.double.alter('invoices', id, { billing_reason: 'manual' })
    const { cycle, changes } = await on.current.invoice(id)
    expect(cycle).to.equal(null)
    expect(changes).to.have.length(1)
  })

  it('of a plan that cost nothing knows it by what it credits', async () => {
    const { subscriptionId } = await first()
    const { double, large, starter } = on.current
    const { id } = await double.changePlan(subscriptionId, large.id)
    const { lines } = double.store.get('invoices', id)
    lines.data.splice(0, 1, proration(id, { amount: 0, pricing: priced(starter.id) }, true))
    expect((await on.current.invoice(id)).changes).to.have.length(1)
    expect((await on.current.invoice(id)).changes[0]).to.include({ fromPlanId: 'starter', planId: 'large' })
  })

  it('has no change of what is no plan, nor at the end of a period, nor from a plan that is not known', async () => {
    const { subscriptionId } = await first()
    const { double, large } = on.current
    const addon = double.sell({ amounts: { brl: 100 }, recurring: 'month' })
    const { id } = await double.changePlan(subscriptionId, large.id)
    const { lines } = double.store.get('invoices', id)
    const [left, taken] = lines.data as [Stripe.InvoiceLineItem, Stripe.InvoiceLineItem]
    Object.assign(left.pricing!.price_details!, { price: addon.id, product: String(addon.product) })
    expect((await on.current.invoice(id)).changes.map(({ fromPlanId }) => fromPlanId)).to.deep.equal([null])
    Object.assign(taken.pricing!.price_details!, { price: addon.id, product: String(addon.product) })
    expect((await on.current.invoice(id)).changes).to.deep.equal([])
    Object.assign(taken.pricing!.price_details!, { price: large.id, product: String(large.product) })
    taken.period.start = taken.period.end
    expect((await on.current.invoice(id)).changes).to.deep.equal([])
  })

  it('of a change that begins a period says what of its price is new money', async () => {
    const { invoiceId } = await first()
    const { double, large } = on.current
    double.alter('invoices', invoiceId, { billing_reason: 'subscription_update' })
    const { lines } = double.store.get('invoices', invoiceId)
    const [line] = lines.data as [Stripe.InvoiceLineItem]
    const read = async () => (await on.current.invoice(invoiceId)).cycle?.newMoney
    expect(await read(), 'nothing is given back').to.equal(null)
    lines.data.push(proration(invoiceId, { id: 'il_1', amount: -900, pricing: priced(large.id) }))
    expect(await read()).to.deep.equal({ paidInCents: 4_000, priceInCents: 4_900 })
    lines.data.push(proration(invoiceId, { id: 'il_2', amount: -9_000, pricing: priced(large.id) }))
    expect(await read()).to.deep.equal({ paidInCents: 0, priceInCents: 4_900 })
    lines.data.push(proration(invoiceId, { id: 'il_3', amount: 9_500, pricing: priced(large.id) }))
    expect(await read()).to.deep.equal({ paidInCents: 4_500, priceInCents: 4_900 })
    line.discount_amounts = [{ amount: 4_400, discount: 'di_1' }]
    expect(await read()).to.deep.equal({ paidInCents: 100, priceInCents: 500 })
    line.discount_amounts = [{ amount: 4_900, discount: 'di_1' }]
    expect(await read(), 'free by a coupon').to.equal(null)
    double.alter('invoices', invoiceId, { billing_reason: 'subscription_cycle' })
    line.discount_amounts = []
    expect(await read(), 'a renewal is paid as a whole').to.equal(null)
  })

  it('of a cheaper plan costs nothing, and never less', async () => {
    const { subscriptionId } = await first()
    await on.current.double.changePlan(subscriptionId, on.current.large.id)
    await on.current.double.changePlan(subscriptionId, 'starter-monthly')
    const invoice = await on.current.invoice(on.current.latestInvoice(subscriptionId))
    expect(invoice).to.include({ amount: 0, returnedInCents: 0, cycle: null })
  })

  it('of a plan that changes pays for the period that begins with it, if one does', async () => {
    const { subscriptionId, invoiceId } = await first()
    on.current.double.alter('invoices', invoiceId, { billing_reason: 'subscription_update' })
    const { currentPeriodStart } = await on.current.subscription(subscriptionId)
    expect((await on.current.invoice(invoiceId)).cycle).to.include({ periodStart: currentPeriodStart })
  })
})
