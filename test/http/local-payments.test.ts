/** The local payment provider as a person asks it. */
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { FORM, LocalPaymentsHarness } from './local-payments-harness.ts'

describe('/local/payments', () => {
  let local: LocalPaymentsHarness

  before(async () => {
    local = await LocalPaymentsHarness.start()
  })
  after(() => local.stop())
  beforeEach(() => local.reset())

  it('shows a checkout as JSON to who asks for that, and as a page to a browser', async () => {
    const path = await local.open({ planId: 'starter' })
    const shown = await local.get(path)
    expect(shown.status).to.equal(200)
    expect(shown.json).to.deep.equal({
      checkoutId: path.split('/').at(-1),
      kind: 'plan',
      planId: 'starter',
      customerId: 'ada',
      amountInCents: 4900,
      currency: 'BRL',
      state: 'open',
    })
    for (const accept of ['*/*', 'text/html,application/xhtml+xml;q=0.9,*/*;q=0.8']) {
      const page = await local.get(path, { accept })
      expect(page.headers.get('content-type')).to.equal('text/html; charset=utf-8')
      expect(page.text).to.include('49.00 BRL').and.to.include('value="pays-late"')
      expect(page.headers.get('content-security-policy')).to.include("frame-ancestors 'none'")
      expect(page.headers.get('x-frame-options')).to.equal('DENY')
      expect(page.headers.get('cache-control')).to.equal('no-store')
    }
    const pack = await local.get(await local.open({ packId: 'credits-10k' }))
    expect(pack.json).to.include({ kind: 'pack', packId: 'credits-10k', amountInCents: 980 })
  })

  it('takes each outcome once', async () => {
    const states = { pays: 'paid', 'pays-late': 'pending', fails: 'failed', abandons: 'expired' }
    for (const [outcome, state] of Object.entries(states)) {
      const path = await local.open({ packId: 'credits-10k' })
      const chosen = await local.post(path, { outcome, amountInCents: 500 })
      expect([chosen.status, (chosen.json as { state: string }).state]).to.deep.equal([200, state])
      const again = await local.post(path, { outcome: 'pays' })
      expect([again.status, again.json]).to.deep.equal([
        409,
        { error: `Checkout is ${state}`, code: 'checkout_closed' },
      ])
      expect((await local.get(path)).json).to.include({ state })
    }
  })

  it('answers once it has told', async () => {
    local.told.acknowledge = async () => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      return true
    }
    await local.bought()
    expect(local.told.notifications).to.have.length(2)
    local.told.acknowledge = () => true
  })

  it('walks through the life of a subscription', async () => {
    const { subscription, payment, paymentId } = await local.bought()
    const subscriptionId = subscription.split('/').at(-1)
    const act = async (action: string, more = {}) =>
      (await local.post(subscription, { action, ...more })).json
    const state = async () =>
      ((await local.get('/local/payments?customerId=ada')).json as { subscriptions: { state: string }[] })
        .subscriptions[0]!.state
    expect(await act('cancel')).to.deep.equal({ subscriptionId, state: 'CANCELLING' })
    expect(await act('resume')).to.deep.equal({ subscriptionId, state: 'ACTIVE' })
    expect(await act('change-plan', { planId: 'growth' })).to.deep.equal({ subscriptionId, state: 'ACTIVE' })
    const late = { planId: 'starter', outcome: 'pays-late' }
    expect(await act('change-plan', late)).to.deep.equal({ subscriptionId, state: 'ACTIVE' })
    const { payments } = (await local.get('/local/payments?customerId=ada')).json as {
      payments: { state: string }[]
    }
    expect(payments[0]!.state).to.equal('open')
    expect(await act('change-plan', { planId: 'growth' })).to.deep.equal({ subscriptionId, state: 'ACTIVE' })
    expect(await act('fail-payment')).to.deep.equal({ subscriptionId, state: 'ACTIVE' })
    const moved = await local.post('/local/payments/advance', { days: 31 })
    expect((moved.json as { now: number }).now).to.be.closeTo(Date.now() + 31 * 86_400_000, 60_000)
    expect(await state()).to.equal('PAST_DUE')
    await local.post('/local/payments/advance', { days: 1 })
    expect(await state()).to.equal('ACTIVE')
    expect((await local.post(`${payment}/refund`, { amountInCents: 900 })).json).to.deep.equal({
      paymentId,
      kind: 'plan',
      amountInCents: 4900,
      refundedInCents: 900,
      state: 'paid',
    })
    expect((await local.post(`${payment}/dispute`, { outcome: 'won' })).json).to.include({ state: 'paid' })
    expect((await local.post(`${payment}/refund`, '')).json).to.include({
      refundedInCents: 4900,
      state: 'refunded',
    })
    expect((await local.post(`${payment}/dispute`, { outcome: 'lost' })).json).to.deep.equal({
      error: 'Nothing is left of the payment',
      code: 'payment_returned',
    })
    expect(await act('cancel-now')).to.deep.equal({ subscriptionId, state: 'CANCELLED' })
    expect(await act('cancel')).to.deep.equal({ error: 'Subscription has ended', code: 'subscription_ended' })
  })

  it('lists payments and subscriptions of one customer', async () => {
    const { subscription, paymentId } = await local.bought()
    await local.post(await local.open({ packId: 'credits-10k' }), { outcome: 'pays-late' })
    await local.post(await local.open({ packId: 'credits-10k' }, 'bob'), { outcome: 'pays' })
    const { json } = await local.get('/local/payments?customerId=ada', {})
    const { payments, subscriptions } = json as { payments: object[]; subscriptions: object[] }
    expect(subscriptions).to.deep.equal([{ subscriptionId: subscription.split('/').at(-1), state: 'ACTIVE' }])
    expect(payments).to.have.length(2)
    expect(payments[0]).to.include({ kind: 'pack', state: 'open', amountInCents: 980, refundedInCents: 0 })
    expect(payments[1]).to.deep.equal({
      paymentId,
      kind: 'plan',
      amountInCents: 4900,
      refundedInCents: 0,
      state: 'paid',
    })
    expect((await local.get('/local/payments?customerId=__proto__')).json).to.deep.equal({
      payments: [],
      subscriptions: [],
    })
  })

  it('lists events and repeats them', async () => {
    await local.bought()
    const { json } = await local.get('/local/payments/events', {})
    const [first, second] = json as { eventId: string }[]
    expect(first).to.have.all.keys('eventId', 'kind', 'customerId', 'subscriptionId', 'at')
    expect(second).to.include({ kind: 'invoice.changed', customerId: 'ada' })
    const repeated = await local.post(`/local/payments/events/${first!.eventId}/repeat`, '')
    expect([repeated.status, repeated.json]).to.deep.equal([200, first])
    expect(local.told.bodies.map(({ eventId }) => eventId)).to.deep.equal([
      first!.eventId,
      second!.eventId,
      first!.eventId,
    ])
  })

  it('answers forms with pages', async () => {
    const path = await local.open({ planId: 'starter' })
    const paid = await local.submit(path, { outcome: 'pays', amountInCents: '4000' })
    expect([paid.status, paid.headers.get('content-type')]).to.deep.equal([200, 'text/html; charset=utf-8'])
    expect(paid.text).to.include('40.00 BRL').and.to.include('href="/local/payments/customers/ada"')
    const again = await local.submit(path, { outcome: 'pays', amountInCents: '' })
    expect([again.status, again.text.includes('Checkout is paid')]).to.deep.equal([409, true])
    const customer = await local.get('/local/payments/customers/ada', { accept: 'text/html' })
    expect(customer.text).to.include('ACTIVE').and.to.include('40.00')
    const { subscriptions, payments } = await local.provider.list('ada')
    const subscription = `/local/payments/subscriptions/${subscriptions[0]!.subscriptionId}`
    const payment = `/local/payments/${payments[0]!.paymentId}`
    for (const [to, fields, shown] of [
      [subscription, { action: 'cancel' }, 'CANCELLING'],
      [subscription, { action: 'change-plan', planId: 'growth' }, 'CANCELLING'],
      [`${payment}/refund`, { amountInCents: '100' }, '1.00 refunded'],
      [`${payment}/dispute`, { outcome: 'lost' }, 'disputed'],
      ['/local/payments/advance?customerId=ada', { days: '31' }, 'CANCELLED'],
      ['/local/payments/advance', { days: '1' }, 'The clock of the provider says'],
    ] as const) {
      const page = await local.submit(to, fields)
      expect([page.status, page.text.includes(shown)], to).to.deep.equal([200, true])
    }
    const wrong = await local.submit('/local/payments/advance', { days: '0' })
    expect([wrong.status, wrong.text.includes('days must be an integer from 1 to 400')]).to.deep.equal([
      400,
      true,
    ])
  })

  it('takes JSON whatever it is called, as curl does', async () => {
    const answer = await local.post('/local/payments/advance', '{"days":1}', { 'content-type': FORM })
    expect([answer.status, Object.keys(answer.json as object)]).to.deep.equal([200, ['now']])
  })

  it('escapes every text of its pages', async () => {
    await local.db`INSERT INTO plans (plan_id, name, price_in_cents, currency, prices, credits_per_cycle, is_active)
      VALUES ('<b>"&', 'D', 700, 'USD', '{"USD":700}', 1000, true)`
    const path = await local.open({ planId: '<b>"&' }, `<script>'`)
    await local.db`DELETE FROM plans WHERE plan_id = '<b>"&'`
    const page = await local.get(path, { accept: 'text/html' })
    expect(page.text).to.include('&lt;b&gt;&quot;&amp;').and.to.include('&lt;script&gt;&#39;')
    expect(page.text).not.to.include('<script>')
    const wrong = await local.submit('/local/payments/advance', { '<script>': '1' })
    expect(wrong.text).to.include('&lt;script&gt; is not a known field')
  })
})
