/** A service that sells by Stripe, as it is configured, with a double of Stripe behind it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { Subscription } from '../../internal/domain/model.ts'
import { eventually } from '../support/eventually.ts'
import { createInstallation, type Installation } from '../support/service.ts'
import { type StripeDouble, startStripeDouble } from '../support/stripe/double.ts'
import { tempFolder } from '../support/temp-folders.ts'

const SECRET = 'whsec_0123456789'

describe('a service that sells by Stripe', function () {
  this.timeout(120_000)
  let installation: Installation
  let double: StripeDouble
  let env: Record<string, string>

  before(async () => {
    double = await startStripeDouble({ secret: SECRET })
    const plan = double.sell({ amounts: { brl: 4_900, usd: 990 }, recurring: 'month' })
    const pack = double.sell({ amounts: { brl: 980, usd: 198 } })
    const catalogue = join(tempFolder('catalogue'), 'catalogue.json')
    const prices = { BRL: 4_900, USD: 990 }
    writeFileSync(
      catalogue,
      JSON.stringify({
        plans: [{ planId: 'own', name: 'Own', prices, creditsPerCycle: 50_000, offerId: plan.id }],
        packs: [{ packId: 'own-pack', credits: 10_000, offerId: pack.id }],
      }),
    )
    env = {
      PENSTOCK_CATALOG: catalogue,
      PENSTOCK_STRIPE_KEY: 'sk_test_0123456789',
      PENSTOCK_STRIPE_WEBHOOK_SECRETS: `whsec_9876543210,${SECRET}`,
      PENSTOCK_STRIPE_RETURN_URL: 'https://app.example/billing',
      PENSTOCK_STRIPE_ORIGIN: double.origin,
    }
    installation = await createInstallation({})
    await installation.start(env)
    double.deliverTo = `${installation.service.url}/v1/payments/stripe`
  })
  after(async () => {
    await installation?.stop()
    await double?.stop()
  })

  const subscription = async () =>
    (
      await installation
        .api()
        .expect<{ subscription: Subscription | null }>(200, 'GET', '/v1/admin/subscription')
    ).subscription

  async function page(path: string): Promise<string> {
    return (await installation.api().expect<{ checkoutUrl: string }>(200, 'GET', path)).checkoutUrl
  }

  it('brings the credits of a plan and a pack when Stripe tells that they are paid', async () => {
    const { credits } = await installation.api().credits()
    await double.completeCheckout(await page('/v1/admin/subscription/checkout-url?planId=own'), 'pays')
    await eventually(async () => expect((await subscription())?.status).to.equal('ACTIVE'))
    await double.completeCheckout(await page('/v1/admin/credit-packs/own-pack/checkout-url'), 'pays')
    await eventually(async () =>
      expect((await installation.api().credits()).credits).to.equal(credits + 60_000),
    )
    expect(double.told.answers.every(({ status }) => status === 200)).to.equal(true)
  })

  it('refuses a notification that is not signed by Stripe, and has no provider of its own beside it', async () => {
    const { url } = installation.service
    const body = JSON.stringify(double.events()[0])
    const refused = await fetch(`${url}/v1/payments/stripe`, {
      method: 'POST',
      body,
      headers: { 'stripe-signature': 't=1,v1=00' },
    })
    expect(refused.status).to.equal(400)
    expect((await fetch(`${url}/local/payments/events`)).status).to.equal(404)
  })

  it('finds at its start what was not told while it was away', async () => {
    await installation.stop()
    double.losing(true)
    const { id } = double.store.list('subscriptions')[0]!
    await double.cancel(id)
    double.losing(false)
    await installation.start(env)
    await eventually(async () => expect((await subscription())?.status).to.equal('CANCELLING'), {
      timeoutMs: 30_000,
    })
  })

  it('sells to an account again whose customer somebody deleted at Stripe', async () => {
    const [old] = double.store.list('customers')
    double.deliverTo = `${installation.service.url}/v1/payments/stripe`
    await double.deleteCustomer(old!.id)
    await eventually(async () => expect((await subscription())?.status).to.equal('CANCELLED'), {
      timeoutMs: 30_000,
    })
    await double.completeCheckout(await page('/v1/admin/subscription/checkout-url?planId=own'), 'pays')
    await eventually(async () => expect((await subscription())?.status).to.equal('ACTIVE'), {
      timeoutMs: 30_000,
    })
    expect(double.store.list('customers')).to.have.length(2)
    const told = installation.events('a deleted customer of the payment provider is replaced')
    expect(told.map(({ gone }) => gone)).to.deep.equal([old!.id])
  })

  it('does not start with a key of the other mode', async () => {
    await installation.stop()
    const refused = await installation.spawn({ ...env, PENSTOCK_STRIPE_KEY: 'sk_live_0123456789' })
    expect(await refused.exited()).to.equal(1)
    expect(refused.output()).to.match(
      /PENSTOCK_STRIPE_KEY: is of the live mode, and this database has customers of the test mode/,
    )
  })

  it('has no route for notifications without a secret', async () => {
    await installation.stop()
    await installation.start({ ...env, PENSTOCK_STRIPE_WEBHOOK_SECRETS: '' })
    const answer = await fetch(`${installation.service.url}/v1/payments/stripe`, {
      method: 'POST',
      body: '{}',
    })
    expect(answer.status).to.equal(404)
  })
})
