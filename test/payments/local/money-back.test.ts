import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { MAX_CLOSED, MAX_EVENTS, MAX_UNTOLD } from '../../../internal/payments/local/draft.ts'
import { tellAgain, told, untold } from '../../../internal/payments/local/events.ts'
import { beginDispute, refund } from '../../../internal/payments/local/money-back.ts'
import type { DisputeOutcome } from '../../../internal/payments/local/ports.ts'
import { paymentView, readingOf } from '../../../internal/payments/local/readings.ts'
import { PureProvider, pack, refusalOf, starter } from './pure-provider.ts'

let provider: PureProvider

beforeEach(() => {
  provider = new PureProvider()
  provider.buy(starter)
  provider.tell()
})

const back = (amountInCents?: number) =>
  provider.run((draft) => refund(draft, provider.payment.paymentId, amountInCents))
const dispute = (outcome: DisputeOutcome) =>
  provider.run((draft) => beginDispute(draft, provider.payment.paymentId, outcome))
const returned = () => provider.invoices.at(-1)!.returnedInCents
const shown = () => paymentView(provider.payment)

describe('a refund at the local provider', () => {
  it('gives some of it back, then the rest', () => {
    back(900)
    expect([returned(), shown().state, shown().refundedInCents]).to.deep.equal([900, 'paid', 900])
    back()
    expect([returned(), shown().state, shown().refundedInCents]).to.deep.equal([4900, 'refunded', 4900])
    const invoice = `invoice.changed ${provider.payment.paymentId}`
    expect(provider.tell()).to.deep.equal([invoice, invoice])
    expect(refusalOf(() => back())).to.equal('payment_returned')
  })

  it('gives no more back than is left', () => {
    back(900)
    expect(refusalOf(() => back(4001))).to.equal(
      'amountInCents must be at most 4000: that is left of the payment',
    )
    back(4000)
    expect(refusalOf(() => back(1))).to.equal('amountInCents must be at most 0: that is left of the payment')
    expect(returned()).to.equal(4900)
  })

  it('is only of what was paid', () => {
    for (const outcome of ['pays-late', 'fails'] as const) {
      provider.buy(pack, outcome)
      expect(refusalOf(() => back())).to.equal('payment_not_paid')
    }
    provider.buy(pack, 'pays', 0)
    expect(refusalOf(() => back())).to.equal('payment_returned')
    expect(refusalOf(() => provider.run((draft) => refund(draft, 'in_none', 1)))).to.equal(
      'Payment not found',
    )
  })

  it('of a pack is not taken back by what is forgotten', () => {
    const id = provider.buy(pack)
    back()
    provider.tell()
    const renewal = provider.state.payments[0]!
    for (let count = 0; count < MAX_CLOSED; count++) provider.state.payments.push({ ...renewal })
    provider.run(() => {})
    expect(provider.state.payments.some(({ checkoutId }) => checkoutId === id)).to.equal(false)
    expect(readingOf(provider.state, { kind: 'pack', id })).to.equal(undefined)
  })

  it('of a pack is told of its checkout', () => {
    const checkoutId = provider.buy(pack)
    provider.tell()
    back(80)
    expect(provider.read('pack', checkoutId)).to.include({ returnedInCents: 80, paidInCents: 980 })
    expect(provider.tell()).to.deep.equal([`pack.changed ${checkoutId}`])
  })
})

describe('a dispute at the local provider', () => {
  /** What was returned when each event was told. */
  function tellings(): number[] {
    const seen: number[] = []
    for (let [event] = untold(provider.state); event !== undefined; [event] = untold(provider.state)) {
      seen.push(returned())
      const { eventId } = event
      provider.run((draft) => told(draft, eventId))
    }
    return seen
  }

  it('that is lost holds the rest for good', () => {
    back(900)
    provider.tell()
    dispute('lost')
    expect(tellings()).to.deep.equal([4900, 4900])
    expect(shown()).to.include({ state: 'disputed', refundedInCents: 900 })
    expect(refusalOf(() => dispute('won'))).to.equal('payment_returned')
    expect(refusalOf(() => back())).to.equal('payment_returned')
  })

  it('that is won gives back what was held, once that was told', () => {
    dispute('won')
    expect(shown().state).to.equal('disputed')
    expect(refusalOf(() => dispute('won'))).to.equal('payment_disputed')
    expect(tellings()).to.deep.equal([4900, 0])
    expect(shown()).to.include({ state: 'paid', refundedInCents: 0 })
    back()
    expect(shown().state).to.equal('refunded')
  })

  it('that could not be told is decided when the clock goes on', () => {
    dispute('won')
    provider.advance(1)
    expect([returned(), shown().state]).to.deep.equal([0, 'paid'])
  })
})

describe('a change at the local provider', () => {
  it('that throws leaves everything as it was', () => {
    const before = structuredClone(provider.state)
    const text = refusalOf(() =>
      provider.run((draft) => {
        refund(draft, provider.payment.paymentId, 1)
        throw new Error('broken off')
      }),
    )
    expect(text).to.equal('broken off')
    expect(provider.state).to.deep.equal(before)
  })
})

describe('events of the local provider', () => {
  it('are told again when it is asked for', () => {
    const { eventId } = provider.state.events[0]!
    provider.run((draft) => tellAgain(draft, eventId))
    expect(provider.tell()).to.deep.equal([`subscription.changed ${provider.subscription.subscriptionId}`])
    expect(refusalOf(() => provider.run((draft) => tellAgain(draft, 'evt_none')))).to.equal('Event not found')
  })

  it('are bounded, and so is all that is over', () => {
    const subscriptions = 12
    for (let n = 1; n < subscriptions; n++) provider.buy(starter)
    for (let n = 0; n < 14; n++) {
      provider.advance(400)
      provider.tellAtOnce()
    }
    provider.run(() => {})
    expect(provider.state.events).to.have.length(MAX_EVENTS)
    expect(provider.state.payments).to.have.length(MAX_CLOSED)
    expect(provider.state.subscriptions).to.have.length(subscriptions)
    expect(provider.invoices.at(-1)!.cycle!.periodEnd).to.equal(provider.reading.currentPeriodEnd)
  })

  it('are not lost before they are told, however many one advance brings, nor is what they name', () => {
    for (let n = 1; n < 200; n++) provider.buy(starter)
    for (const checkoutId of [provider.buy(pack), provider.buy(pack, 'fails')]) {
      expect(untold(provider.state).map(({ objectId }) => objectId)).to.include(checkoutId)
    }
    provider.tellAtOnce()
    provider.advance(400)
    const named = untold(provider.state).map(({ objectId }) => objectId)
    expect(named).to.have.length(200 * 13 * 2)
    const renewals = provider.state.payments.filter(({ kind, checkoutId }) => kind === 'plan' && !checkoutId)
    expect(renewals).to.have.length(200 * 13)
    expect(new Set(named)).to.include.all.keys(...renewals.map(({ paymentId }) => paymentId))
  })

  it('are lost at last when nobody ever takes them: the oldest first', () => {
    for (let n = 1; n < 60; n++) provider.buy(starter)
    const [first] = untold(provider.state)
    for (let n = 0; n < 13; n++) provider.advance(400)
    const left = untold(provider.state)
    expect(left).to.have.length(MAX_UNTOLD)
    expect(left).to.not.include(first)
    expect(left.at(-1)!.at).to.be.at.most(provider.now + provider.state.offsetMs)
  })
})
