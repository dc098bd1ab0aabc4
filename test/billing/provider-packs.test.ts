import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { providerHarnessOfSuite, START } from './provider-harness.ts'

describe('billing: credit packs that are read at a payment provider', () => {
  const on = providerHarnessOfSuite()

  describe('a pack', () => {
    it('brings its credits and an invoice of the subscription', async () => {
      await on.tell(on.subscription(), on.pack())
      expect((await on.movements())[0]).to.deep.equal(['purchase', 50, 'Credit pack fifty', 60])
      const { customerId, subscriptionId } = on
      const { invoiceId } = on.pack()
      expect(await on.invoices()).to.deep.equal([
        {
          invoiceId,
          customerId,
          subscriptionId,
          status: 'paid',
          amount: 500,
          paidAt: START,
          createdAt: START,
        },
      ])
      expect(on.credited).to.deep.equal([customerId])
    })

    for (const state of ['open', 'failed', 'expired'] as const) {
      it(`that is ${state} brings nothing`, async () => {
        expect(await on.tell(on.subscription(), on.pack({ state, paidAt: null }))).to.equal('applied')
        expect((await on.account()).credits).to.equal(10)
        expect(await on.invoices()).to.deep.equal([])
      })
    }

    for (const [paidInCents, credits] of [
      [250, 25],
      [499, 50],
      [10, 1],
      [1_000, 100],
      [0, 0],
    ] as const) {
      it(`brings ${credits} of 50 credits for ${paidInCents} of 500 cents`, async () => {
        await on.tell(on.pack({ paidInCents, amount: paidInCents + 90 }))
        expect((await on.account()).credits).to.equal(10 + credits)
        // Each customer has begun with some.
        expect(await on.movements()).to.have.length(credits === 0 ? 1 : 2)
        expect(on.credited).to.have.length(credits === 0 ? 0 : 1)
      })
    }

    it('brings them once, however often it is told', async () => {
      const [reference] = on.set(on.pack())
      const nodes = [on.events(), on.events()]
      await Promise.all(Array.from({ length: 20 }, (_, n) => nodes[n % 2]!.receive(reference!)))
      expect((await on.account()).credits).to.equal(60)
    })

    it('brings what it brought when it was paid, whatever plans cost since', async () => {
      await on.tell(on.pack())
      await on.db`UPDATE plans SET prices = '{"BRL": 10}'::jsonb WHERE plan_id = 'basic'`
      try {
        await on.tell(on.pack({ returnedInCents: 250 }))
      } finally {
        await on.db`UPDATE plans SET prices = '{"BRL": 1000}'::jsonb WHERE plan_id = 'basic'`
      }
      expect((await on.account()).credits).to.equal(35)
    })

    it('gives them back with its money, and shows it', async () => {
      await on.tell(on.subscription(), on.pack(), on.pack({ returnedInCents: 500 }))
      expect((await on.account()).credits).to.equal(10)
      expect((await on.invoices())[0]).to.include({ status: 'refunded' })
    })

    for (const [first, second] of [
      ['ACTIVE', 'CANCELLED'],
      ['ACTIVE', 'PENDING'],
      ['PAST_DUE', 'CANCELLED'],
      ['CANCELLING', 'PENDING'],
    ] as const) {
      it(`has an invoice of the subscription that is ${first}, not of a newer one that is ${second}`, async () => {
        await on.tell(on.subscription({ status: first }))
        const newer = { subscriptionId: `sub-${randomUUID()}`, createdAt: START + 1 }
        await on.tell(on.subscription({ ...newer, status: second }), on.pack())
        expect((await on.invoices())[0]!.subscriptionId).to.equal(on.subscriptionId)
      })
    }

    it('brings them back when a dispute is won', async () => {
      await on.tell(on.pack(), on.pack({ returnedInCents: 500 }))
      on.credited.length = 0
      await on.tell(on.pack())
      expect((await on.account()).credits).to.equal(60)
      expect(on.credited).to.deep.equal([on.customerId])
    })

    it('is sold also when it is not on sale any more, or nobody has a subscription', async () => {
      await on.tell(on.pack({ packId: 'old' }))
      expect((await on.account()).credits).to.equal(60)
      expect(await on.invoices()).to.deep.equal([])
    })
  })
})
