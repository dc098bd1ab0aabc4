/** Billing through the whole service: the default catalogue, one of one's own, and a start that refuses a bad one. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, describe, it } from 'mocha'
import type { CreditPack, CreditTransaction, Plan } from '../../internal/domain/model.ts'
import type { Api } from '../support/api.ts'
import { createInstallation, type Installation, startService } from '../support/service.ts'
import { sharedInstallation } from '../support/shared-installation.ts'
import { tempFolder } from '../support/temp-folders.ts'

describe('billing', function () {
  this.timeout(120_000)

  describe('with the default catalogue', () => {
    it('offers plans, and packs at their rates, which the local provider sells', async () => {
      const api = (await sharedInstallation()).api()
      const plans = await api.expect<Plan[]>(200, 'GET', '/v1/admin/plans')
      expect(plans.map(({ planId, isActive }) => [planId, isActive])).to.deep.equal([
        ...[
          ['starter', true],
          ['growth', true],
          ['scale', true],
        ],
      ])
      for (const currency of ['BRL', 'USD'] as const) {
        const list = await packsIn(api, currency)
        expect(list.currencies).to.deep.equal(['BRL', 'USD'])
        expect(list.packs.every((pack) => pack.available && pack.currency === currency)).to.equal(true)
        const tiers = list.packs.map(({ packId, tier }) => [packId, tier.planId])
        expect(tiers).to.deep.equal([
          ['credits-10k', 'starter'],
          ['credits-50k', 'starter'],
          ['credits-200k', 'starter'],
          ['credits-250k', 'growth'],
          ['credits-1m', 'scale'],
        ])
        expect(list.packs[2]?.betterValue?.packId).to.equal('credits-250k')
      }
    })

    it('refuses what is not there, and has no subscription or invoice', async () => {
      const api = (await sharedInstallation()).api()
      const refusals: [method: string, path: string, status: number, error: string][] = [
        ['GET', '/v1/admin/subscription/checkout-url?planId=none', 404, 'Plan not found'],
        [
          'GET',
          '/v1/admin/credit-packs/credits-10k/checkout-url',
          403,
          'Credit packs can be bought only with an active subscription',
        ],
        ['GET', '/v1/admin/credit-packs/none/checkout-url', 404, 'Credit pack not found'],
        ['DELETE', '/v1/admin/subscription', 404, 'No active subscription'],
        ['DELETE', '/v1/admin/subscription/immediate', 404, 'No active subscription'],
        ['GET', '/v1/admin/invoices/none', 404, 'Invoice not found'],
      ]
      for (const [method, path, status, error] of refusals) {
        const answer = await api.request(method, path)
        expect([answer.status, answer.json().error], path).to.deep.equal([status, error])
      }
      expect(await api.expect(200, 'GET', '/v1/admin/subscription')).to.deep.equal({
        subscription: null,
        plan: null,
      })
      expect(await api.expect(200, 'GET', '/v1/admin/invoices')).to.deep.equal([])
      const checkout = await api.expect<{ checkoutUrl: string }>(
        200,
        'GET',
        '/v1/admin/subscription/checkout-url?planId=starter',
      )
      expect(checkout.checkoutUrl).to.match(/^http:\/\/127\.0\.0\.1:\d+\/local\/payments\/checkouts\/cs_\w+$/)
    })

    it('tells what moved the balance', async () => {
      const api = (await sharedInstallation()).api()
      await api.addCredits(3)
      const { credits } = await api.credits()
      const { transactions } = await api.expect<{ transactions: CreditTransaction[] }>(
        ...([200, 'GET', '/v1/admin/credits/transactions?limit=500'] as const),
      )
      expect(transactions.some(({ type, amount }) => type === 'grant' && amount === 3)).to.equal(true)
      // Others of the run send webhooks with these credits meanwhile.
      expect(transactions[0]?.balanceAfter).to.be.at.most(credits)
    })
  })

  describe('with a catalogue of one’s own', () => {
    let installation: Installation
    const folder = tempFolder('catalogue')
    const plan = { planId: 'own', name: 'Own', prices: { USD: 500 }, creditsPerCycle: 1_000 }

    after(() => installation?.stop())

    function file(name: string, content: unknown): string {
      const path = join(folder, name)
      writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
      return path
    }

    it('sells what the file says, until another one says otherwise', async () => {
      installation = await createInstallation({ shared: true })
      const packs = [{ packId: 'own-pack', credits: 100, offerId: 'offer' }]
      await installation.start({ PENSTOCK_CATALOG: file('own.json', { plans: [plan], packs }) })
      const api = installation.api()
      expect(await api.expect(200, 'GET', '/v1/admin/plans')).to.deep.equal([
        { ...plan, priceInCents: 500, currency: 'USD', isActive: true },
      ])
      const list = await packsIn(api, 'BRL')
      expect([list.currency, list.currencies]).to.deep.equal(['USD', ['USD']])
      expect(list.packs[0]).to.include({ packId: 'own-pack', priceInCents: 50, available: true })
      await installation.stop()

      const next = { plans: [{ ...plan, planId: 'next' }], packs: [] }
      await installation.start({ PENSTOCK_CATALOG: file('next.json', next) })
      const plans = await api.expect<Plan[]>(200, 'GET', '/v1/admin/plans')
      expect(plans.map(({ planId, isActive }) => [planId, isActive])).to.deep.equal([
        ['next', true],
        ['own', false],
      ])
      expect((await packsIn(api, 'USD')).packs).to.deep.equal([])
    })

    it('is refused in one line when the file is missing or wrong', async () => {
      const bad: [path: string, line: RegExp][] = [
        [join(folder, 'none.json'), /^PENSTOCK_CATALOG: [^\n]*none\.json[^\n]*$/],
        [file('text.json', 'plans'), /^PENSTOCK_CATALOG: is not valid JSON$/],
        [
          file('wrong.json', { plans: [{ ...plan, creditsPerCycle: 0 }], packs: [] }),
          /^PENSTOCK_CATALOG: plans\.0\.creditsPerCycle [^\n]+$/,
        ],
      ]
      for (const [path, line] of bad) {
        const service = await startService({ dataDir: tempFolder(), env: { PENSTOCK_CATALOG: path } })
        expect(await service.exited()).to.equal(1)
        expect(service.output().trim()).to.match(line)
      }
    })
  })
})

function packsIn(
  api: Api,
  currency: string,
): Promise<{ currency: string; currencies: string[]; packs: CreditPack[] }> {
  return api.expect(200, 'GET', `/v1/admin/credit-packs?currency=${currency}`)
}
