import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Invoice, Subscription } from '../../internal/domain/model.ts'
import { pastedPage } from './pasted-page.ts'

describe('the commands of the guide to billing', function () {
  this.timeout(120_000)
  const page = pastedPage('docs/guide/billing.md')
  const api = () => page.installation.api()
  const balance = async () => (await api().credits()).credits
  const invoices = () => api().expect<Invoice[]>(200, 'GET', '/v1/admin/invoices')
  const subscription = async () =>
    (await api().expect<{ subscription: Subscription }>(200, 'GET', '/v1/admin/subscription')).subscription

  it('buy a plan: it is active, with credits and an invoice', async () => {
    const before = await balance()
    const output = await page.paste('Buy a plan')
    expect(output).to.include('"kind":"plan","planId":"starter"').and.include('"state":"open"')
    expect(output).to.include('"state":"paid"').and.include('"status":"ACTIVE"')
    expect(await subscription()).to.include({ planId: 'starter', status: 'ACTIVE', autoRenew: true })
    expect((await balance()) - before).to.equal(50_000)
    expect((await invoices()).map(({ status, amount }) => [status, amount])).to.deep.equal([['paid', 4_900]])
  })

  it('buy a pack on top', async () => {
    const before = await balance()
    const output = await page.paste('Buy a credit pack')
    expect(output).to.include('"type":"purchase"')
    expect((await balance()) - before).to.equal(10_000)
  })

  it('renew', async () => {
    const before = await balance()
    await page.paste('Let a month pass')
    expect((await balance()) - before).to.equal(50_000)
    expect((await invoices()).map(({ status }) => status)).to.deep.equal(['paid', 'paid', 'paid'])
  })

  it('give money back, and the credits with it', async () => {
    const before = await balance()
    const output = await page.paste('Give money back')
    expect(output).to.include('"status":"refunded"')
    expect((await balance()) - before).to.equal(-50_000)
  })

  it('cancel: usable until the period is over', async () => {
    const before = await balance()
    const output = await page.paste('Cancel')
    expect(output).to.include('"status":"CANCELLING"').and.include('"kind":"subscription.changed"')
    expect(await subscription()).to.include({ status: 'CANCELLED', autoRenew: false })
    expect(await balance()).to.equal(before)
  })

  it('are all run here', () => {
    // The section about Stripe has no commands: it takes an account there.
    expect(page.pasted).to.deep.equal([...page.sections.keys()])
  })
})
