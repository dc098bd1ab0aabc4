/** `npm run payments` (docs/guide/billing.md), against the double of Stripe. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'

import type { CataloguePlan } from '../../internal/billing/catalogue.ts'
import { createCatalogueStore } from '../../internal/postgres/catalogue.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createProviderCustomers } from '../../internal/postgres/provider-customers.ts'
import { Shop } from '../payments/stripe/shop.ts'
import { type CommandEnd, runCommand } from '../support/command.ts'
import { balanceOf, insertCustomer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'
import { startStripeDouble } from '../support/stripe/double.ts'
import { tempFolder } from '../support/temp-folders.ts'

const USAGE = 'usage: npm run payments -- register https://… | check | sweep\n'

describe('npm run payments', function () {
  this.timeout(60_000)
  let shop: Shop
  let db: Database
  let env: Record<string, string>

  before(async () => {
    shop = new Shop(await startStripeDouble({ secret: 'whsec_0123456789' }))
    const databaseUrl = await freshDatabase()
    db = connect(databaseUrl, { max: 2 })
    const catalog = join(tempFolder('payments'), 'catalog.json')
    writeFileSync(catalog, JSON.stringify(catalogueOf(shop)))
    env = {
      PENSTOCK_DATABASE_URL: databaseUrl,
      PENSTOCK_CATALOG: catalog,
      PENSTOCK_STRIPE_KEY: 'sk_test_0123456789',
      PENSTOCK_STRIPE_WEBHOOK_SECRETS: 'whsec_0123456789',
      PENSTOCK_STRIPE_RETURN_URL: 'https://shop.example/billing',
      PENSTOCK_STRIPE_ORIGIN: shop.double.origin,
    }
  })

  after(async () => {
    await db?.end({ timeout: 2 })
    await shop?.double.stop()
  })

  const run = (args: readonly string[], more: Record<string, string> = {}): Promise<CommandEnd> =>
    runCommand('cmd/payments/main.ts', args, { ...env, ...more })

  it('registers the endpoint, and shows its secret once', async () => {
    const first = await run(['register', 'https://penstock.example'])
    expect(first).to.include({ code: 0, stderr: '' })
    expect(first.stdout).to.match(
      /^we_\w+ sends to https:\/\/penstock\.example\/v1\/payments\/stripe\nPENSTOCK_STRIPE_WEBHOOK_SECRETS=whsec_\w+\n$/,
    )
    const second = await run(['register', 'https://penstock.example'])
    expect(second).to.include({ code: 0, stderr: '' })
    expect(second.stdout)
      .to.match(/^we_\w+ was there, and sends to https:.*\n$/)
      .and.not.include('whsec_')
  })

  it('checks offers and endpoint, and says what is wrong', async () => {
    expect(await run(['check'])).to.deep.include({ code: 0, stdout: 'catalogue, offers and endpoint fit\n' })
    const { id } = shop.double.store.list('endpoints')[0]!
    shop.double.alter('endpoints', id, { status: 'disabled' })
    shop.double.alter('prices', shop.large.id, { active: false })
    const { code, stdout } = await run(['check'], { PENSTOCK_STRIPE_WEBHOOK_SECRETS: '' })
    expect(code).to.equal(1)
    expect(stdout.trimEnd().split('\n')).to.deep.equal([
      `plan large: ${shop.large.id} or its product is not active`,
      `endpoint ${id} (https://penstock.example/v1/payments/stripe): it is disabled`,
      'PENSTOCK_STRIPE_WEBHOOK_SECRETS is not set: no notification is taken',
    ])
  })

  it('sweeps what was missed', async () => {
    const customerId = await insertCustomer(db, 0)
    await createCatalogueStore(db).publish({ plans: shop.plans, packs: shop.packs })
    const page = await shop.planPage(customerId)
    await createProviderCustomers(db).keep('stripe', customerId, shop.customers.get(customerId)!)
    await shop.double.completeCheckout(page!, 'pays')
    const payer = shop.customers.get(customerId)!
    await shop.double.createSubscription(payer, 'starter-monthly', { penstock_customer: 'somebody-else' })
    const { code, stdout } = await run(['sweep'])
    expect(stdout).to.include('names somebody-else, who does not pay for it')
    expect(stdout).to.match(/\n4 objects read, 0 of them cannot be applied yet\n$/)
    expect(code).to.equal(0)
    expect(await balanceOf(db, customerId)).to.equal(50_000)
  })

  it('refuses a key of the other mode: credits of the test mode were never paid', async () => {
    const { code, stderr } = await run(['sweep'], { PENSTOCK_STRIPE_KEY: 'rk_live_0123456789' })
    expect(stderr).to.equal(
      'PENSTOCK_STRIPE_KEY: is of the live mode, and this database has customers of the test mode\n',
    )
    expect(code).to.equal(1)
  })

  it('says what cannot be applied, and fails', async () => {
    const [payer] = shop.customers.values()
    const price = shop.double.sell({ amounts: { brl: 1 }, recurring: 'month' })
    const customerId = [...shop.customers.keys()][0]!
    await shop.double.createSubscription(payer!, price.id, { penstock_customer: customerId })
    const { code, stdout } = await run(['sweep'])
    expect(stdout).to.include(`the price ${price.id} is the offer of no plan in the catalogue`)
    expect(code).to.equal(1)
  })

  it('fails when Stripe does, in one line', async () => {
    shop.double.api.failing = 401
    for (const args of [['register', 'https://penstock.example'], ['check'], ['sweep']]) {
      const { code, stderr } = await run(args)
      expect(code, args.join(' ')).to.equal(1)
      expect(stderr.trimEnd().split('\n'), args.join(' ')).to.have.length(1)
    }
    shop.double.api.failing = undefined
  })

  it('tells its use', async () => {
    const wrong = [
      [],
      ['nonsense'],
      ['check', 'more'],
      ['register'],
      ['register', 'http://penstock.example'],
      ['register', 'https://penstock.example?a=b'],
      ['register', 'https://user@penstock.example'],
      ['register', 'https://penstock.example', 'more'],
    ]
    for (const args of wrong) {
      expect(await run(args), args.join(' ')).to.deep.equal({ code: 2, stdout: '', stderr: USAGE })
    }
  })

  it('wants a key', async () => {
    const none = {
      PENSTOCK_STRIPE_KEY: '',
      PENSTOCK_STRIPE_WEBHOOK_SECRETS: '',
      PENSTOCK_STRIPE_RETURN_URL: '',
      PENSTOCK_STRIPE_ORIGIN: '',
    }
    const end = await run(['check'], none)
    expect(end).to.deep.include({ code: 1, stderr: 'PENSTOCK_STRIPE_KEY is not set\n' })
  })
})

/** With the prices that are at Stripe; no pack. */
function catalogueOf({ plans, packs }: Shop) {
  packs.length = 0
  const [starter, large] = plans as [CataloguePlan, CataloguePlan]
  large.prices = { BRL: 9_900, USD: 1_990 }
  large.priceInCents = 9_900
  return { plans: [starter, large], packs }
}
