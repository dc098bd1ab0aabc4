import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { type Reading, UnusableReadingError } from '../../internal/billing/readings.ts'
import { createProviderCustomers } from '../../internal/postgres/provider-customers.ts'
import { PERIOD, providerHarnessOfSuite, START } from './provider-harness.ts'

describe('billing: what is refused of a payment provider', () => {
  const on = providerHarnessOfSuite()

  describe('what is not of the customer that it names', () => {
    it('changes nothing: no such object, customer or payer', async () => {
      const before = await on.everything()
      const nothing = { kind: 'invoice', id: 'none' } as const
      expect(await on.events().receive(nothing)).to.equal('ignored')
      expect(on.reported).to.deep.equal([])
      expect(await on.everything()).to.equal(before)
      const stranger = { customerId: 'nobody' }
      await on.changesNothing(on.subscription(stranger), 'ignored', /^stranger: nobody$/)
      await on.changesNothing(on.pack({ providerCustomerId: 'cus-none' }), 'ignored', /^stranger: /)
    })

    it('changes nothing when another customer pays for it', async () => {
      await on.tell(on.subscription(), on.invoice())
      on.credited.length = 0
      const other = await on.newCustomer(0)
      const payer = `cus-${other}`
      await on.changesNothing(on.pack({ providerCustomerId: payer }), 'ignored', /^stranger: /)
      const stolen = on.subscription({ customerId: other, providerCustomerId: payer })
      await on.changesNothing(stolen, 'ignored', /^stranger: /)
      const invoice = on.invoice(1, { customerId: other, providerCustomerId: payer })
      await on.changesNothing(invoice, 'ignored', /^stranger: /)
    })

    it('is not told again when it cannot be used either, as what another installation sells', async () => {
      const [reference] = on.set(on.subscription({ customerId: 'nobody' }))
      const owner = { customerId: 'nobody', providerCustomerId: 'cus-nobody' }
      on.provider.beforeAnswer = () =>
        Promise.reject(new UnusableReadingError('no plan has its price', owner))
      expect(await on.events().receive(reference!)).to.equal('ignored')
      expect(on.reported).to.deep.equal(['stranger: nobody'])
      on.provider.beforeAnswer = async () => {}
      on.reported.length = 0
      const strange = on.pack({ providerCustomerId: 'cus-nobody', paidInCents: 0.5 })
      await on.changesNothing(strange, 'ignored', /^stranger: /)
    })

    it('changes nothing of an invoice that is of another customer', async () => {
      await on.tell(on.subscription(), on.invoice(), on.pack())
      const other = await on.newCustomer(0)
      const own = { customerId: other, providerCustomerId: `cus-${other}` }
      const subscriptionId = `sub-${randomUUID()}`
      await on.tell(on.subscription({ ...own, subscriptionId }))
      on.credited.length = 0
      await on.changesNothing(on.invoice(0, { ...own, subscriptionId }), 'ignored', /^stranger: /)
      const pack = on.pack({ ...own, checkoutId: `co-${subscriptionId}` })
      await on.changesNothing(pack, 'ignored', /^stranger: /)
    })
  })

  describe('a customer of the provider who was replaced', () => {
    it('still pays for what he has, and so does the new one', async () => {
      const { customerId } = on
      await on.tell(on.subscription(), on.invoice())
      const change = { gone: `cus-${customerId}`, made: `new-${customerId}` }
      await createProviderCustomers(on.db).replace('recording', customerId, change)
      await on.tell(on.invoice(0, { returnedInCents: 500 }), on.subscription({ status: 'CANCELLED' }))
      expect(await on.account()).to.include({ credits: 60 })
      expect((await on.current())?.status).to.equal('CANCELLED')
      const next = { subscriptionId: `sub-${randomUUID()}`, providerCustomerId: change.made }
      expect(await on.tell(on.subscription({ ...next, createdAt: START + 1 }))).to.equal('applied')
      expect(await on.current()).to.include({ subscriptionId: next.subscriptionId, status: 'ACTIVE' })
      expect(on.reported).to.deep.equal([])
    })
  })

  describe('what cannot be used', () => {
    const newMoney = (paidInCents: number, priceInCents: number) => {
      const cycle = on.invoice().cycle!
      return on.invoice(0, { cycle: { ...cycle, newMoney: { paidInCents, priceInCents } } })
    }
    const bad: [what: string, reading: () => unknown, error: RegExp][] = [
      ['an unknown plan', () => on.subscription({ planId: 'none' }), /no plan none/],
      ['an unknown pack', () => on.pack({ packId: 'none' }), /no pack none/],
      ['a currency without prices', () => on.pack({ currency: 'USD' }), /price in USD/],
      ['another currency', () => ({ ...on.pack(), currency: 'EUR' }), /currency /],
      ['a customer that is no identifier', () => on.subscription({ customerId: 'a/b' }), /customerId /],
      ['no customer', () => ({ ...on.pack(), customerId: undefined }), /customerId /],
      ['a plan of another type', () => ({ ...on.subscription(), planId: 5 }), /planId /],
      ['a huge pack', () => on.pack({ packId: 'x'.repeat(1_000_000) }), /packId /],
      ['a payer with a space', () => on.pack({ providerCustomerId: 'a b' }), /providerCustomerId /],
      ['another state', () => ({ ...on.subscription(), status: 'GONE' }), /status /],
      ['no state of a pack', () => ({ ...on.pack(), state: null }), /status /],
      ['half a cent', () => on.pack({ paidInCents: 0.5 }), /paidInCents /],
      ['an amount below zero', () => on.invoice(0, { amount: -1 }), /amount /],
      ['more back than was paid', () => on.invoice(0, { returnedInCents: 1_001 }), /returnedInCents /],
      ['credits beyond all numbers', () => on.pack({ paidInCents: 9e15 }), /paidInCents /],
      ['a time in text', () => ({ ...on.subscription(), createdAt: '2026-01-01' }), /createdAt /],
      ['a time beyond all dates', () => on.subscription({ currentPeriodEnd: 8.65e15 }), /currentPeriodEnd /],
      ['a paid time of another type', () => ({ ...on.invoice(), paidAt: 'now' }), /paidAt /],
      [
        'a period that ends as it begins',
        () => on.subscription({ currentPeriodEnd: START }),
        /currentPeriodEnd /,
      ],
      [
        'a cycle that ends as it begins',
        () =>
          on.invoice(0, { cycle: { planId: 'basic', periodStart: START, periodEnd: START, newMoney: null } }),
        /periodEnd /,
      ],
      ['a change to no plan', () => on.difference({}, { planId: 'a/b' }), /planId /],
      ['a change from no plan', () => on.difference({}, { fromPlanId: '' }), /fromPlanId /],
      ['a change at no time', () => on.difference({}, { changedAt: Number.NaN }), /changedAt /],
      ['a change at the end', () => on.difference({}, { changedAt: START + PERIOD }), /periodEnd /],
      ['a change to an unknown plan', () => on.difference({}, { planId: 'none' }), /no plan none/],
      ['more money than the price', () => newMoney(101, 100), /paidInCents /],
      ['money for a price of nothing', () => newMoney(0, 0), /priceInCents /],
      ['half a cent of a price', () => newMoney(0, 0.5), /priceInCents /],
    ]
    for (const [what, reading, error] of bad) {
      it(`with ${what} changes nothing and is told again`, async () => {
        const told = reading() as Reading
        if (told.kind === 'invoice') await on.tell(on.subscription())
        await on.changesNothing(told, 'later', new RegExp(`^unusable: .*${error.source}`))
      })
    }

    it('is told again when the provider says that its own customer has it', async () => {
      const [reference] = on.set(on.subscription())
      const owner = { customerId: on.customerId, providerCustomerId: `cus-${on.customerId}` }
      on.provider.beforeAnswer = () =>
        Promise.reject(new UnusableReadingError('no plan has its price', owner))
      expect(await on.events().receive(reference!)).to.equal('later')
      expect(on.reported).to.deep.equal(['unusable: no plan has its price'])
    })

    it('of another object than was asked for changes nothing', async () => {
      on.provider.objects.set('wanted', on.subscription())
      expect(await on.events().receive({ kind: 'subscription', id: 'wanted' })).to.equal('later')
      expect(on.reported).to.deep.equal(['unusable: another object was read'])
      expect(await on.current()).to.equal(null)
      const [pack] = on.set(on.pack())
      expect(await on.events().receive({ kind: 'invoice', id: pack!.id })).to.equal('later')
      expect((await on.account()).credits).to.equal(10)
    })
  })
})
