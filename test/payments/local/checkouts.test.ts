import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { isIdentifier } from '../../../internal/domain/identifiers.ts'
import { MAX_OPEN } from '../../../internal/payments/local/checkouts.ts'
import { changesSince, checkoutView, paymentView } from '../../../internal/payments/local/readings.ts'
import { ada, PureProvider, pack, refusalOf, starter } from './pure-provider.ts'

describe('a checkout at the local provider', () => {
  let provider: PureProvider

  beforeEach(() => {
    provider = new PureProvider()
  })

  const stateOf = (checkoutId: string) =>
    provider.state.checkouts.find((each) => each.checkoutId === checkoutId)!.state

  it('shows what is sold to whom', () => {
    const checkoutId = provider.open(starter)
    expect(checkoutView(provider.state.checkouts[0]!)).to.deep.equal({
      checkoutId,
      kind: 'plan',
      planId: 'starter',
      customerId: 'ada',
      amountInCents: 4900,
      currency: 'BRL',
      state: 'open',
    })
    provider.open(pack)
    expect(checkoutView(provider.state.checkouts[1]!)).to.include({ kind: 'pack', packId: 'credits-10k' })
    expect(isIdentifier(checkoutId)).to.equal(true)
  })

  it('is answered again while it is open, and never once it was used', () => {
    const first = provider.open(starter)
    expect(provider.open(starter)).to.equal(first)
    expect(provider.open(pack)).not.to.equal(first)
    expect(provider.open(starter, { ...ada, customerId: 'bob' })).not.to.equal(first)
    provider.choose(first, 'pays')
    const second = provider.open(starter)
    expect(second).not.to.equal(first)
    provider.choose(second, 'abandons')
    expect(provider.open(starter)).not.to.equal(second)
  })

  it('expires when the price has changed', () => {
    const first = provider.open(starter)
    const second = provider.open({ ...starter, priceInCents: 5900 })
    expect(second).not.to.equal(first)
    expect([stateOf(first), stateOf(second)]).to.deep.equal(['expired', 'open'])
  })

  it('expires when there are too many, the oldest first', () => {
    const first = provider.open(pack)
    for (let n = 1; n < MAX_OPEN; n++) provider.open(pack, { ...ada, customerId: `c-${n}` })
    expect(stateOf(first)).to.equal('open')
    provider.open(pack, { ...ada, customerId: 'last' })
    expect(stateOf(first)).to.equal('expired')
    expect(provider.state.checkouts.filter(({ state }) => state === 'open')).to.have.length(MAX_OPEN)
  })

  it('of a plan that is paid brings an active subscription and a paid invoice', () => {
    const checkoutId = provider.buy(starter)
    expect(stateOf(checkoutId)).to.equal('paid')
    const at = provider.now
    const end = Date.UTC(2026, 3, 10, 12)
    const { subscriptionId } = provider.subscription
    expect(provider.reading).to.deep.equal({
      kind: 'subscription',
      ...ada,
      subscriptionId,
      planId: 'starter',
      status: 'ACTIVE',
      currentPeriodStart: at,
      currentPeriodEnd: end,
      createdAt: at,
    })
    const { paymentId } = provider.payment
    expect(provider.invoices).to.deep.equal([
      {
        kind: 'invoice',
        ...ada,
        invoiceId: paymentId,
        subscriptionId,
        status: 'paid',
        amount: 4900,
        paidAt: at,
        createdAt: at,
        cycle: { planId: 'starter', periodStart: at, periodEnd: end, newMoney: null },
        changes: [],
        returnedInCents: 0,
      },
    ])
    expect([subscriptionId, paymentId].every(isIdentifier)).to.equal(true)
    expect(provider.tell()).to.deep.equal([
      `subscription.changed ${subscriptionId}`,
      `invoice.changed ${paymentId}`,
    ])
  })

  it('of a pack that is paid brings its payment', () => {
    const checkoutId = provider.buy(pack)
    expect(provider.read('pack', checkoutId)).to.deep.equal({
      kind: 'pack',
      ...ada,
      checkoutId,
      packId: 'credits-10k',
      state: 'paid',
      paidInCents: 980,
      currency: 'BRL',
      amount: 980,
      returnedInCents: 0,
      createdAt: provider.now,
      paidAt: provider.now,
      invoiceId: provider.payment.paymentId,
    })
    expect(provider.tell()).to.deep.equal([`pack.changed ${checkoutId}`])
  })

  it('takes another amount for a coupon, which counts once; nothing is an amount', () => {
    provider.buy(starter, 'pays', 0)
    expect(provider.invoices[0]).to.include({ status: 'paid', amount: 0, returnedInCents: 0 })
    expect(paymentView(provider.payment).state).to.equal('paid')
    provider.advance(31)
    expect(provider.invoices[1]).to.include({ status: 'paid', amount: 4900 })
    const half = provider.buy(pack, 'pays', 490)
    expect(provider.read('pack', half)).to.include({ paidInCents: 490, amount: 490 })
    const free = provider.buy(pack, 'pays', 0)
    expect(provider.read('pack', free)).to.include({ state: 'paid', paidInCents: 0 })
  })

  it('that is paid late is pending until the clock goes on', () => {
    const plan = provider.buy(starter, 'pays-late', 4000)
    const late = provider.buy(pack, 'pays-late')
    expect([stateOf(plan), stateOf(late)]).to.deep.equal(['pending', 'pending'])
    expect(provider.reading.status).to.equal('PENDING')
    expect(provider.invoices[0]).to.include({ status: 'open', paidAt: null })
    expect(provider.read('pack', late)).to.include({ state: 'open', paidAt: null })
    provider.now += 5_000
    provider.advance(1)
    expect([stateOf(plan), stateOf(late)]).to.deep.equal(['paid', 'paid'])
    expect(provider.reading).to.include({ status: 'ACTIVE', currentPeriodStart: provider.now })
    expect(provider.invoices[0]).to.deep.include({
      status: 'paid',
      amount: 4000,
      paidAt: provider.now,
      cycle: {
        planId: 'starter',
        periodStart: provider.now,
        periodEnd: provider.reading.currentPeriodEnd,
        newMoney: null,
      },
    })
    expect(provider.read('pack', late)).to.include({ state: 'paid', paidAt: provider.now })
  })

  it('that fails leaves a failed payment and no subscription', () => {
    const plan = provider.buy(starter, 'fails')
    expect(stateOf(plan)).to.equal('failed')
    expect(provider.state.subscriptions).to.have.length(0)
    expect(paymentView(provider.payment)).to.include({ kind: 'plan', state: 'failed', amountInCents: 4900 })
    expect(provider.tell()).to.deep.equal([])
    const failed = provider.buy(pack, 'fails')
    expect(provider.read('pack', failed)).to.include({ state: 'failed', paidAt: null })
    expect(provider.tell()).to.deep.equal([`pack.changed ${failed}`])
    provider.advance(400)
    expect(provider.state.payments.map(({ state }) => state)).to.deep.equal(['failed', 'failed'])
  })

  it('that is left expires without a payment', () => {
    const plan = provider.buy(starter, 'abandons')
    const left = provider.buy(pack, 'abandons')
    expect([stateOf(plan), stateOf(left)]).to.deep.equal(['expired', 'expired'])
    expect(provider.state.payments).to.have.length(0)
    expect(provider.read('pack', left)).to.include({ state: 'expired', paidAt: null, returnedInCents: 0 })
    expect(provider.tell()).to.deep.equal([`pack.changed ${left}`])
  })

  it('takes one choice', () => {
    for (const outcome of ['pays', 'pays-late', 'fails', 'abandons'] as const) {
      const checkoutId = provider.buy(pack, outcome)
      const before = provider.state
      expect(refusalOf(() => provider.choose(checkoutId, 'pays'))).to.equal('checkout_closed')
      expect(provider.state).to.equal(before)
    }
    expect(refusalOf(() => provider.choose('cs_none', 'pays'))).to.equal('Checkout not found')
  })

  it('is among what has changed once it was used', () => {
    const open = provider.open(pack)
    expect(changesSince(provider.state, 0)).to.deep.equal([])
    provider.choose(open, 'pays')
    provider.buy(starter)
    const { subscriptionId } = provider.subscription
    const invoice = { kind: 'invoice', id: provider.payment.paymentId }
    expect(changesSince(provider.state, provider.now)).to.deep.equal([
      { kind: 'subscription', id: subscriptionId },
      invoice,
      { kind: 'pack', id: open },
    ])
    expect(changesSince(provider.state, provider.now + 1)).to.deep.equal([])
  })
})
