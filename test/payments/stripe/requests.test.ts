/**
 * What the adapter asks of Stripe, judged by Stripe's own mock of its API: a parameter that Stripe does not know, or of
 * another type, fails. The double, which answers these requests in the other tests, is judged by the same document.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import Stripe from 'stripe'
import { request } from 'undici'

import { registerEndpoint } from '../../../internal/payments/stripe/endpoint.ts'
import type { Asked } from '../../support/stripe/api-server.ts'
import { mockFolderOrSkip, startStripeMock, stripeSchema } from '../../support/stripe/mock.ts'
import { CUSTOMER, KEY, type Shop, shop } from './shop.ts'

const DAY_MS = 86_400_000

describe("requests to Stripe, by Stripe's own mock", function () {
  this.timeout(60_000)
  const on = shop()
  let mock: Awaited<ReturnType<typeof startStripeMock>>

  before(async function () {
    mock = await startStripeMock(mockFolderOrSkip(this, "requests to Stripe, by Stripe's own mock"))
  })

  after(() => mock?.stop())

  it('are all as it knows them', async () => {
    await doEverything(on.current)
    const { asked } = on.current.double.api
    // Ids aside, which requests there are.
    const kinds = new Set(asked.map(({ method, path }) => `${method} ${pathOf(path)}`))
    expect([...kinds].sort()).to.deep.equal(EVERY_REQUEST)
    for (const each of asked) {
      // What is not there at the double is asked for as well as what is.
      const { status, text } = await repeat(each)
      expect(status, `${each.method} ${each.path} ${each.body}: ${text}`).to.equal(200)
    }
  })

  it('would fail with a parameter that it does not know, or of another type', async () => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/x-www-form-urlencoded' }
    const wrong: readonly (readonly [string, string, string])[] = [
      ['POST', '/v1/customers', 'descriptoin=acme'],
      ['POST', '/v1/checkout/sessions', 'mode=subscription&adaptive_pricing[enabled]=never'],
      ['GET', '/v1/invoices?subscriptoin=sub_1', ''],
    ]
    for (const [method, path, body] of wrong) {
      const { status } = await repeat({ method, path, body, headers })
      expect(status, path).to.equal(400)
    }
  })

  it("has the version of the package's types", () => {
    expect(stripeSchema()!.version).to.equal(Stripe.API_VERSION)
  })

  it('come with a document that tells a wrong object from a right one', async () => {
    const schema = stripeSchema()!
    const id = await on.current.subscribe()
    const right = structuredClone(on.current.double.store.get('subscriptions', id))
    for (const price of right.items.data.map((item) => item.price)) delete price.currency_options
    expect(schema.faults(right)).to.deep.equal([])
    expect(schema.faults({ ...right, invented: true }).join()).to.include('invented')
    expect(schema.faults({ ...right, status: 'happy' }).join()).to.include('status')
    expect(schema.faults({ ...right, metadata: undefined }).join()).to.include('metadata')
    expect(schema.faults({ object: 'event', data: { object: { object: 'invoice' } } }).join()).to.include(
      'lines',
    )
    expect(schema.faults({ object: 'nonsense' })).to.have.length(1)
  })

  async function repeat({ method, path, body, headers }: Asked): Promise<{ status: number; text: string }> {
    const { authorization = '', 'content-type': type = '', 'stripe-version': version } = headers
    // Not by `fetch`: its answers are judged as those of the service.
    const { statusCode, body: answered } = await request(`${mock.origin}${path}`, {
      method: method as 'GET' | 'POST' | 'DELETE',
      headers: {
        authorization,
        'content-type': type,
        ...(typeof version === 'string' && { 'stripe-version': version }),
      },
      ...(method !== 'GET' && { body }),
    })
    return { status: statusCode, text: await answered.text() }
  }
})

function pathOf(path: string): string {
  return path.split('?')[0]!.replace(/\/[a-z]+_[A-Za-z0-9_-]*\d[A-Za-z0-9_-]*/, '/{id}')
}

/** Every request that the adapter ever makes, its lists and its repetitions. */
async function doEverything(shop: Shop): Promise<void> {
  const { double, provider, large } = shop
  const subscriptionId = await shop.subscribe()
  // A price that is known by its lookup key only, in an invoice with many lines.
  const { lines } = double.store.get('invoices', shop.latestInvoice(subscriptionId))
  lines.data.push(...Array.from({ length: 12 }, (_, index) => ({ ...lines.data[0]!, id: `il_${index}` })))
  const pack = await shop.buyPack('pays', { amountInCents: 500, taxInCents: 10 })
  const refund = await double.refund(pack, 10)
  Object.assign(refund, { payment_intent: null })
  await provider.notification(double.told.signed(double.told.tell('refund.updated', refund)))
  await double.dispute(pack, 'won')
  await double.changePlan(subscriptionId, large.id)
  await provider.portalUrl(CUSTOMER)
  for await (const reference of provider.changes(0)) await provider.read(reference)
  for await (const reference of provider.changes(Date.now() - DAY_MS)) await provider.read(reference)
  await double.schedulePlan(subscriptionId, 'starter-monthly')
  await provider.cancelAtPeriodEnd({ subscriptionId, reason: 'why' })
  await provider.cancelNow({ subscriptionId, reason: 'why' })
  await provider.cancelNow({ subscriptionId, reason: 'why' })
  await provider.cancelAndRefund(subscriptionId)
  const stripe = new Stripe(KEY, { host: '127.0.0.1', port: new URL(double.origin).port, protocol: 'http' })
  const { id } = await registerEndpoint(stripe, 'https://penstock.example')
  double.alter('endpoints', id, { status: 'disabled' })
  await registerEndpoint(stripe, 'https://penstock.example')
}

const EVERY_REQUEST = [
  'DELETE /v1/subscriptions/{id}',
  'GET /v1/billing_portal/configurations',
  'GET /v1/charges/{id}',
  'GET /v1/checkout/sessions',
  'GET /v1/checkout/sessions/{id}',
  'GET /v1/customers/{id}',
  'GET /v1/disputes',
  'GET /v1/events',
  'GET /v1/invoice_payments',
  'GET /v1/invoices',
  'GET /v1/invoices/{id}',
  'GET /v1/invoices/{id}/lines',
  'GET /v1/prices',
  'GET /v1/prices/{id}',
  'GET /v1/refunds',
  'GET /v1/subscriptions',
  'GET /v1/subscriptions/{id}',
  'GET /v1/webhook_endpoints',
  'POST /v1/billing_portal/configurations',
  'POST /v1/billing_portal/sessions',
  'POST /v1/checkout/sessions',
  'POST /v1/customers',
  'POST /v1/refunds',
  'POST /v1/subscription_schedules/{id}/release',
  'POST /v1/subscriptions/{id}',
  'POST /v1/webhook_endpoints',
  'POST /v1/webhook_endpoints/{id}',
]
