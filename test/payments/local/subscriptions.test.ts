import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { monthsAfter } from '../../../internal/payments/local/months.ts'
import { paymentView } from '../../../internal/payments/local/readings.ts'
import {
  cancelAtPeriodEnd,
  changePlan,
  endSubscription,
  failNext,
  resume,
} from '../../../internal/payments/local/subscriptions.ts'
import { PureProvider, refusalOf, starter } from './pure-provider.ts'

const DAY = 24 * 60 * 60 * 1_000

describe('months', () => {
  const days = (from: string, count: number) =>
    Array.from({ length: count }, (_, n) =>
      new Date(monthsAfter(Date.parse(from), n + 1)).toISOString().slice(0, 16),
    )

  it('keep the day and the time of day, or take the last day of a shorter month', () => {
    expect(days('2026-01-31T23:59Z', 4)).to.deep.equal([
      '2026-02-28T23:59',
      '2026-03-31T23:59',
      '2026-04-30T23:59',
      '2026-05-31T23:59',
    ])
    expect(days('2027-12-30T00:00Z', 2)).to.deep.equal(['2028-01-30T00:00', '2028-02-29T00:00'])
  })
})

describe('a subscription at the local provider', () => {
  let provider: PureProvider

  beforeEach(() => {
    provider = new PureProvider()
    provider.buy(starter)
    provider.tell()
  })

  const status = () => provider.reading.status
  const act = (what: typeof resume) => provider.run((draft) => what(draft, draft.state.subscriptions.at(-1)!))
  const change = (planId: string, priceInCents: number) =>
    provider.run((draft) => changePlan(draft, draft.state.subscriptions.at(-1)!, { planId, priceInCents }))

  it('renews at the end of its period, by an invoice that is paid', () => {
    const end = provider.reading.currentPeriodEnd
    provider.advance(30)
    expect(provider.invoices).to.have.length(1)
    provider.advance(1)
    expect(provider.reading).to.include({ status: 'ACTIVE', currentPeriodStart: end })
    expect(provider.invoices[1]).to.deep.include({
      status: 'paid',
      amount: 4900,
      createdAt: end,
      paidAt: end,
      cycle: {
        planId: 'starter',
        periodStart: end,
        periodEnd: provider.reading.currentPeriodEnd,
        newMoney: null,
      },
    })
    expect(provider.tell()).to.deep.equal([
      `subscription.changed ${provider.subscription.subscriptionId}`,
      `invoice.changed ${provider.payment.paymentId}`,
    ])
  })

  it('renews 13 times in 400 days, each period behind the one before', () => {
    provider = new PureProvider(Date.UTC(2026, 0, 31))
    provider.buy(starter)
    provider.advance(400)
    const cycles = provider.invoices.map(({ cycle }) => cycle!)
    expect(cycles).to.have.length(14)
    for (const [n, { periodStart }] of cycles.slice(1).entries()) {
      expect(periodStart).to.equal(cycles[n]!.periodEnd)
    }
    const starts = cycles.slice(0, 4).map((each) => new Date(each.periodStart).toISOString().slice(0, 10))
    expect(starts).to.deep.equal(['2026-01-31', '2026-02-28', '2026-03-31', '2026-04-30'])
    expect(provider.reading.currentPeriodEnd).to.be.greaterThan(provider.now + 400 * DAY)
  })

  it('renews with the real clock, too', () => {
    provider.now += 62 * DAY
    provider.run(() => {})
    expect(provider.invoices).to.have.length(3)
    expect(provider.reading.currentPeriodEnd).to.be.greaterThan(provider.now)
  })

  it('ends with its period when it was cancelled, and can be taken back until then', () => {
    act(cancelAtPeriodEnd)
    expect(status()).to.equal('CANCELLING')
    act(resume)
    expect(status()).to.equal('ACTIVE')
    provider.advance(31)
    expect([status(), provider.invoices.length]).to.deep.equal(['ACTIVE', 2])
    act(cancelAtPeriodEnd)
    provider.tell()
    act(cancelAtPeriodEnd)
    expect(provider.tell()).to.deep.equal([])
    provider.advance(60)
    expect([status(), provider.invoices.length]).to.deep.equal(['CANCELLED', 2])
    expect(refusalOf(() => act(resume))).to.equal('subscription_ended')
    provider.advance(60)
    expect(provider.invoices).to.have.length(2)
  })

  it('ends at once', () => {
    act(endSubscription)
    expect(status()).to.equal('CANCELLED')
    expect(provider.tell()).to.deep.equal([`subscription.changed ${provider.subscription.subscriptionId}`])
    act(endSubscription)
    act(cancelAtPeriodEnd)
    expect(provider.tell()).to.deep.equal([])
    provider.advance(400)
    expect(provider.invoices).to.have.length(1)
  })

  it('is past due when a renewal fails, until a later advance', () => {
    act(failNext)
    expect(provider.tell()).to.deep.equal([])
    const end = provider.reading.currentPeriodEnd
    provider.advance(100)
    expect(provider.reading).to.include({ status: 'PAST_DUE', currentPeriodStart: end })
    expect(provider.invoices.map((each) => each.status)).to.deep.equal(['paid', 'open'])
    expect(paymentView(provider.payment).state).to.equal('open')
    const at = provider.now + 100 * DAY
    provider.advance(1)
    expect(status()).to.equal('ACTIVE')
    expect(provider.invoices.map((each) => each.status)).to.deep.equal(['paid', 'paid', 'paid', 'paid'])
    expect(provider.invoices[1]).to.include({ createdAt: end, paidAt: at })
    expect(provider.reading.currentPeriodEnd).to.be.greaterThan(at + DAY)
  })

  it('pays what is past due when it is resumed', () => {
    act(failNext)
    provider.advance(31)
    expect(status()).to.equal('PAST_DUE')
    act(resume)
    expect([status(), provider.invoices[1]!.status]).to.deep.equal(['ACTIVE', 'paid'])
    expect(refusalOf(() => act(resume))).to.equal('not_resumable')
  })

  it('that is past due ends with its period when it is cancelled, and its open invoice is void', () => {
    act(failNext)
    provider.advance(31)
    act(cancelAtPeriodEnd)
    expect(status()).to.equal('CANCELLING')
    provider.advance(1)
    expect([status(), provider.invoices[1]!.status]).to.deep.equal(['CANCELLING', 'open'])
    provider.advance(31)
    expect([status(), provider.invoices[1]!.status]).to.deep.equal(['CANCELLED', 'void'])
    expect(paymentView(provider.payment).state).to.equal('failed')
  })

  it('that is pending ends at once when it is cancelled, and its money never comes', () => {
    const checkoutId = provider.buy(starter, 'pays-late')
    expect(refusalOf(() => act(failNext))).to.equal('subscription_pending')
    act(cancelAtPeriodEnd)
    provider.advance(40)
    expect([status(), provider.invoices[0]!.status]).to.deep.equal(['CANCELLED', 'void'])
    const checkout = provider.state.checkouts.find((each) => each.checkoutId === checkoutId)
    expect(checkout!.state).to.equal('failed')
  })

  it('changes its plan at once, and the difference of the rest of the period is paid', () => {
    const { currentPeriodStart, currentPeriodEnd } = provider.reading
    provider.now = (currentPeriodStart + currentPeriodEnd) / 2
    change('growth', 14_900)
    expect(provider.reading).to.include({
      planId: 'growth',
      status: 'ACTIVE',
      currentPeriodStart,
      currentPeriodEnd,
    })
    const changed = { fromPlanId: 'starter', planId: 'growth', changedAt: provider.now }
    expect(provider.invoices[1]).to.deep.include({
      status: 'paid',
      amount: 5_000,
      cycle: null,
      changes: [{ ...changed, periodEnd: currentPeriodEnd }],
    })
    provider.advance(31)
    expect(provider.reading.planId).to.equal('growth')
    expect(provider.invoices[2]).to.include({ amount: 14_900 })
    expect(provider.invoices[2]!.cycle!.planId).to.equal('growth')
  })

  it('changes its plan at once also when the difference is paid late, or never', () => {
    provider.run((draft) => {
      const subscription = draft.state.subscriptions.at(-1)!
      changePlan(draft, subscription, { planId: 'growth', priceInCents: 14_900 }, 'pays-late')
    })
    expect([status(), provider.reading.planId, provider.invoices[1]!.status]).to.deep.equal([
      'ACTIVE',
      'growth',
      'open',
    ])
    provider.advance(1)
    expect(provider.invoices[1]).to.include({ status: 'paid', paidAt: provider.invoices[1]!.createdAt })
    provider.run((draft) => {
      const subscription = draft.state.subscriptions.at(-1)!
      changePlan(draft, subscription, { planId: 'huge', priceInCents: 99_900 }, 'fails')
      changePlan(draft, subscription, { planId: 'giant', priceInCents: 999_900 }, 'pays-late')
    })
    act(cancelAtPeriodEnd)
    expect(provider.invoices.map((each) => each.status)).to.deep.equal(['paid', 'paid', 'void', 'open'])
    act(endSubscription)
    expect(provider.invoices.map((each) => each.status)).to.deep.equal(['paid', 'paid', 'void', 'void'])
  })

  it('changes to a cheaper plan without money back', () => {
    change('tiny', 100)
    expect(provider.invoices[1]).to.deep.include({ status: 'paid', amount: 0, cycle: null })
    expect(provider.reading.planId).to.equal('tiny')
  })

  it('keeps its plan when it has that, has ended or is past due', () => {
    expect(refusalOf(() => change('starter', 4_900))).to.equal('same_plan')
    act(failNext)
    provider.advance(31)
    expect(refusalOf(() => change('growth', 14_900))).to.equal('subscription_past_due')
    act(endSubscription)
    expect(refusalOf(() => change('growth', 14_900))).to.equal('subscription_ended')
    expect(provider.reading.planId).to.equal('starter')
  })

  it('stops at a clock that is 100 years ahead', () => {
    act(endSubscription)
    for (let n = 0; n < 91; n++) provider.advance(400)
    expect(refusalOf(() => provider.advance(400))).to.equal('clock_ahead')
  })
})
