import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { ReadingTime } from '../../internal/billing/ports.ts'
import type { InvoiceReading } from '../../internal/billing/readings.ts'
import { createReadingLog } from '../../internal/postgres/provider-readings.ts'
import { PERIOD, providerHarnessOfSuite, START } from './provider-harness.ts'

describe('billing: invoices that are read at a payment provider', () => {
  const on = providerHarnessOfSuite()

  describe('an invoice', () => {
    const stored = async () => (await on.invoices())[0]

    it('is open, then paid', async () => {
      await on.tell(on.subscription(), on.invoice(0, { status: 'open', paidAt: null }))
      const { customerId, subscriptionId } = on
      const { invoiceId } = on.invoice()
      const fixed = { invoiceId, customerId, subscriptionId, amount: 1_000, createdAt: START }
      expect(await stored()).to.deep.equal({ ...fixed, status: 'open', paidAt: null })
      expect((await on.account()).credits).to.equal(10)
      await on.tell(on.invoice())
      expect(await stored()).to.deep.equal({ ...fixed, status: 'paid', paidAt: START + 5 })
    })

    it('may be given up', async () => {
      await on.tell(on.subscription(), on.invoice(0, { status: 'void', paidAt: null }))
      expect(await stored()).to.include({ status: 'void' })
      expect((await on.account()).credits).to.equal(10)
    })

    it('is of two readings of one time what was told later', async () => {
      await on.tell(on.subscription())
      const now = async () => '2026-05-05T00:00:00.000001Z' as ReadingTime
      const node = on.events({ ...createReadingLog(on.db), now })
      for (const status of ['open', 'void', 'open'] as const) {
        const [reference] = on.set(on.invoice(0, { status, paidAt: null }))
        await node.receive(reference!)
        expect(await stored()).to.include({ status })
      }
    })

    it('that is given up stays so, whatever went back', async () => {
      await on.tell(
        on.subscription(),
        on.invoice(0, { status: 'void', paidAt: null, returnedInCents: 1_000 }),
      )
      expect(await stored()).to.include({ status: 'void' })
    })

    it('that is told first reads its subscription', async () => {
      on.set(on.subscription())
      expect(await on.tell(on.invoice())).to.equal('applied')
      expect((await on.current())?.status).to.equal('ACTIVE')
      expect((await on.account()).credits).to.equal(110)
    })

    it('whose subscription is not there yet is told again', async () => {
      expect(await on.tell(on.invoice())).to.equal('later')
      expect(await on.invoices()).to.deep.equal([])
    })

    it('of nothing brings the credits all the same', async () => {
      await on.tell(on.subscription(), on.invoice(0, { amount: 0 }))
      expect((await on.account()).credits).to.equal(110)
      expect(await stored()).to.include({ status: 'paid', amount: 0 })
    })

    it('brings its period once, whichever invoice and however many nodes tell it', async () => {
      await on.tell(on.subscription())
      const [first] = on.set(on.invoice())
      const [second] = on.set(on.invoice(0, { invoiceId: `again-${on.subscriptionId}` }))
      const nodes = [on.events(), on.events()]
      const told = Array.from({ length: 20 }, (_, n) => nodes[n % 2]!.receive(n % 3 ? first! : second!))
      expect(new Set(await Promise.all(told))).to.deep.equal(new Set(['applied']))
      expect((await on.account()).credits).to.equal(110)
      expect(on.credited).to.deep.equal([on.customerId])
    })

    it('of a period that is over brings its credits and leaves the limit', async () => {
      const next = { currentPeriodStart: START + PERIOD, currentPeriodEnd: START + 2 * PERIOD }
      await on.tell(on.subscription({ planId: 'large', ...next }), on.invoice(0))
      expect(await on.account()).to.include({ credits: 110, creditLimit: 0 })
    })
  })

  describe('money that goes back', () => {
    const back = (returnedInCents: number, more: Partial<InvoiceReading> = {}) =>
      on.invoice(0, { returnedInCents, ...more })

    it('takes its part of the credits, as often as it is told, and the rest later', async () => {
      await on.tell(on.subscription(), on.invoice(), back(250), back(250))
      expect((await on.account()).credits).to.equal(85)
      expect((await on.invoices())[0]).to.include({ status: 'paid' })
      const { invoiceId } = on.invoice()
      expect((await on.movements())[0]).to.deep.equal([
        'refund',
        -25,
        `Money back of invoice ${invoiceId}`,
        85,
      ])
      await on.tell(back(1_000))
      expect((await on.account()).credits).to.equal(10)
      expect((await on.invoices())[0]).to.include({ status: 'refunded', paidAt: START + 5 })
    })

    it('leaves a debt of what is spent, which the next credits pay', async () => {
      await on.tell(on.subscription(), on.invoice())
      await on.spend(80)
      await on.tell(back(1_000))
      expect(await on.account()).to.include({ credits: 0, debt: 70 })
      expect((await on.movements()).map(([type, amount]) => [type, amount]).slice(0, 2)).to.deep.include(
        ...[['refund', -30]],
      )
      await on.tell(on.invoice(1))
      expect(await on.account()).to.include({ credits: 30, debt: 0 })
      // Consumption stands above all that happened in its minute.
      const [paid, granted] = (await on.movements()).filter(([type]) => type !== 'consumption')
      expect(paid).to.deep.equal(['refund', -70, 'Credits owed for money that went back', 110])
      expect(granted?.slice(0, 2)).to.deep.equal(['grant', 100])
      for (const [, , , balance] of await on.movements()) expect(balance).to.be.at.least(0)
    })

    it('is paid in parts when the next credits are fewer', async () => {
      await on.tell(on.subscription(), on.invoice())
      await on.spend(110)
      await on.tell(back(1_000), on.pack())
      expect(await on.account()).to.include({ credits: 0, debt: 50 })
    })

    it('comes back when a dispute is won', async () => {
      await on.tell(on.subscription(), on.invoice(), back(1_000))
      expect((await on.invoices())[0]).to.include({ status: 'refunded' })
      on.credited.length = 0
      await on.tell(back(0))
      expect((await on.account()).credits).to.equal(110)
      expect((await on.invoices())[0]).to.include({ status: 'paid' })
      expect(on.credited).to.deep.equal([on.customerId])
    })

    it('is what the reading says that began last', async () => {
      await on.tell(on.subscription(), on.invoice())
      const [reference] = on.set(back(0))
      on.provider.beforeAnswer = async () => {
        on.provider.beforeAnswer = async () => {}
        await on.tell(back(1_000))
      }
      await on.events().receive(reference!)
      expect((await on.account()).credits).to.equal(10)
      expect((await on.invoices())[0]).to.include({ status: 'refunded' })
    })

    it('may have gone back before anything was told', async () => {
      await on.tell(on.subscription(), back(500))
      expect((await on.account()).credits).to.equal(60)
    })
  })
})
