/** Invoices of Stripe in our words (docs/architecture/billing.md, "Stripe"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { CUSTOMER, rejection, shop } from './shop.ts'

describe('an invoice at Stripe', () => {
  const on = shop()

  async function first(choice = {}): Promise<{ subscriptionId: string; invoiceId: string }> {
    const subscriptionId = await on.current.subscribe('pays', choice)
    return { subscriptionId, invoiceId: on.current.latestInvoice(subscriptionId) }
  }

  it('says what was paid with tax, when, and for which period of which plan', async () => {
    const { subscriptionId, invoiceId } = await first({ taxInCents: 490 })
    const { created, status_transitions, lines, customer } = on.current.double.store.get(
      'invoices',
      invoiceId,
    )
    const { start, end } = lines.data[0]!.period
    expect(await on.current.invoice(invoiceId)).to.deep.equal({
      kind: 'invoice',
      invoiceId,
      customerId: CUSTOMER,
      providerCustomerId: customer,
      subscriptionId,
      status: 'paid',
      amount: 5_390,
      paidAt: status_transitions.paid_at! * 1_000,
      createdAt: created * 1_000,
      cycle: { planId: 'starter', periodStart: start * 1_000, periodEnd: end * 1_000, newMoney: null },
      changes: [],
      returnedInCents: 0,
    })
  })

  it('reads the same where API versions before 2025-03-31 put its parts', async () => {
    const { invoiceId } = await first()
    await on.current.double.refund(invoiceId, 100)
    const read = await on.current.invoice(invoiceId)
    on.current.double.version = 'old'
    expect(await on.current.invoice(invoiceId)).to.deep.equal(read)
    expect(read).to.include({ returnedInCents: 100 })
  })

  const STATES = { open: 'open', paid: 'paid', void: 'void', uncollectible: 'void' } as const
  for (const [status, ours] of Object.entries(STATES)) {
    it(`that is ${status} is ${ours}`, async () => {
      const { invoiceId } = await first()
      on.current.double.alter('invoices', invoiceId, { status: status as keyof typeof STATES })
      const read = await on.current.invoice(invoiceId)
      expect(read.status).to.equal(ours)
      expect(read.paidAt === null).to.equal(ours !== 'paid')
    })
  }

  it('that is a draft is not told', async () => {
    const { invoiceId } = await first()
    on.current.double.alter('invoices', invoiceId, { status: 'draft' })
    expect(await on.current.invoice(invoiceId)).to.equal(undefined)
  })

  it('of a renewal pays for the next period', async () => {
    const { subscriptionId } = await first()
    await on.current.double.advance(32)
    const { currentPeriodStart, currentPeriodEnd } = await on.current.subscription(subscriptionId)
    expect((await on.current.invoice(on.current.latestInvoice(subscriptionId))).cycle).to.deep.equal({
      planId: 'starter',
      periodStart: currentPeriodStart,
      periodEnd: currentPeriodEnd,
      newMoney: null,
    })
  })

  for (const reason of ['manual', 'subscription_threshold', 'constructor'] as const) {
    it(`billed for ${reason} pays for no period`, async () => {
      const { invoiceId } = await first()
      on.current.double.alter('invoices', invoiceId, { billing_reason: reason })
      expect(await on.current.invoice(invoiceId)).to.include({ cycle: null })
      on.current.double.forgiveShown()
    })
  }

  it('finds the line of its plan behind a full page of others', async () => {
    const { invoiceId } = await first()
    const { lines } = on.current.double.store.get('invoices', invoiceId)
    const line = lines.data[0]!
    const details = line.parent!.subscription_item_details!
    const proration = {
      ...line,
      parent: { ...line.parent!, subscription_item_details: { ...details, proration: true } },
    }
    lines.data.unshift(...Array.from({ length: 30 }, (_, index) => ({ ...proration, id: `il_${index}` })))
    expect((await on.current.invoice(invoiceId)).cycle).to.include({ planId: 'starter' })
  })

  it('of an offer that no plan has cannot be used', async () => {
    const { invoiceId } = await first()
    on.current.plans.length = 0
    expect(await rejection(on.current.invoice(invoiceId))).to.include({ name: 'UnusableReadingError' })
  })

  it('that cost nothing is paid, and nothing of it goes back', async () => {
    const { invoiceId } = await first({ amountInCents: 0 })
    expect(await on.current.invoice(invoiceId)).to.include({ status: 'paid', amount: 0, returnedInCents: 0 })
  })

  it('tells what went back, and what a dispute holds unless it is won', async () => {
    const { invoiceId } = await first()
    const { double } = on.current
    await double.refund(invoiceId, 900)
    await double.refund(invoiceId, 100)
    expect(await on.current.invoice(invoiceId)).to.include({ returnedInCents: 1_000 })
    const dispute = double.money.openDispute(double.money.chargeOf(invoiceId), 500)
    expect(await on.current.invoice(invoiceId)).to.include({ returnedInCents: 1_500 })
    double.money.closeDispute(dispute, 'won')
    expect(await on.current.invoice(invoiceId)).to.include({ returnedInCents: 1_000 })
    await double.dispute(invoiceId, 'lost')
    // More than was paid never goes back.
    expect(await on.current.invoice(invoiceId)).to.include({ returnedInCents: 4_900 })
  })

  it('counts a refund that fails no more', async () => {
    const { invoiceId } = await first()
    const refund = await on.current.double.refund(invoiceId)
    expect(await on.current.invoice(invoiceId)).to.include({ returnedInCents: 4_900 })
    on.current.double.money.failRefund(refund)
    expect(await on.current.invoice(invoiceId)).to.include({ returnedInCents: 0 })
  })

  for (const status of ['warning_needs_response', 'warning_closed', 'prevented'] as const) {
    it(`counts no dispute that is ${status}`, async () => {
      const { invoiceId } = await first()
      const { money } = on.current.double
      money.openDispute(money.chargeOf(invoiceId)).status = status
      expect(await on.current.invoice(invoiceId)).to.include({ returnedInCents: 0 })
    })
  }

  it('that keeps no metadata belongs to whom its subscription does', async () => {
    const { invoiceId } = await first()
    const { parent } = on.current.double.store.get('invoices', invoiceId)
    parent!.subscription_details!.metadata = null
    expect(await on.current.invoice(invoiceId)).to.include({ customerId: CUSTOMER })
  })

  it('of a stranger, of no subscription, or that is not there, is nothing of ours', async () => {
    const stranger = await on.current.double.strangerEvent()
    expect(await on.current.invoice(on.current.latestInvoice(stranger))).to.equal(undefined)
    const { invoice } = on.current.double.store.get('sessions', await on.current.buyPack())
    expect(await on.current.invoice(String(invoice))).to.equal(undefined)
    expect(await on.current.invoice('in_of-nobody_1')).to.equal(undefined)
  })
})
