import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { PlanChange } from '../../internal/billing/readings.ts'
import { PERIOD, providerHarnessOfSuite, START } from './provider-harness.ts'

describe('billing: plans that change at a payment provider', () => {
  const on = providerHarnessOfSuite()

  describe('a change of plan', () => {
    const large = { planId: 'large' }
    const next = { currentPeriodStart: START + PERIOD, currentPeriodEnd: START + 2 * PERIOD }

    it('is followed at once, and brings the difference for the rest of the period when that is paid, once', async () => {
      await on.tell(on.subscription(), on.invoice(), on.subscription(large))
      expect((await on.current())?.planId).to.equal('large')
      await on.tell(on.difference({ status: 'open', paidAt: null }))
      expect(await on.account()).to.deep.equal({ credits: 110, creditLimit: 100, debt: 0 })
      on.credited.length = 0
      await on.tell(on.difference(), on.difference())
      expect(await on.account()).to.deep.equal({ credits: 560, creditLimit: 1_000, debt: 0 })
      expect((await on.movements())[0]).to.deep.equal(['grant', 450, 'Change to plan Large', 560])
      expect(on.credited).to.deep.equal([on.customerId])
    })

    it('brings nothing when its difference is given up, and its credits when it is paid after all', async () => {
      await on.tell(on.subscription(large), on.invoice(), on.difference({ status: 'void', paidAt: null }))
      expect((await on.account()).credits).to.equal(110)
      await on.tell(on.difference())
      expect((await on.account()).credits).to.equal(560)
    })

    it('brings its credits also when its plan was not known at first', async () => {
      await on.tell(on.subscription(large), on.invoice(), on.difference({ changes: [] }))
      expect((await on.account()).credits).to.equal(110)
      await on.tell(on.difference())
      expect((await on.account()).credits).to.equal(560)
    })

    it('brings nothing by itself, however often it is told', async () => {
      await on.tell(on.subscription(), on.invoice(), on.subscription(large), on.subscription(large))
      expect(await on.account()).to.include({ credits: 110, creditLimit: 100 })
    })

    it('brings nothing more when it goes back and forth', async () => {
      await on.tell(on.subscription(), on.invoice(), on.difference())
      const back = { fromPlanId: 'large', planId: 'basic' }
      on.credited.length = 0
      await on.tell(on.difference({ amount: 0 }, back, 'down'), on.difference({}, {}, 'again'))
      expect(await on.account()).to.include({ credits: 560, creditLimit: 1_000 })
      expect(on.credited).to.deep.equal([])
    })

    it('brings nothing more when it goes back and forth, also when its period is told last', async () => {
      const huge = { planId: 'huge', periodStart: START, periodEnd: START + PERIOD, newMoney: null }
      const down = { fromPlanId: 'huge', planId: 'basic', changedAt: START + PERIOD / 4 }
      await on.tell(on.subscription({ planId: 'huge' }), on.difference({ amount: 0 }, down, 'down'))
      await on.tell(on.difference({}, { planId: 'huge' }))
      expect((await on.account()).credits).to.equal(1_460)
      await on.tell(on.invoice(0, { cycle: huge }))
      expect(await on.account()).to.include({ credits: 3_010, creditLimit: 3_000 })
    })

    it('brings the difference of each step for what was paid, in any order', async () => {
      const up = { fromPlanId: 'large', planId: 'huge' }
      await on.tell(on.subscription({ planId: 'huge' }), on.invoice(), on.difference({}, up, 'second'))
      expect((await on.account()).credits, 'not what the first step costs').to.equal(1_110)
      await on.tell(on.difference())
      expect((await on.account()).credits).to.equal(1_560)
    })

    it('counts also when it is paid before its period, and when its period is over', async () => {
      await on.tell(on.subscription(large), on.difference())
      expect((await on.account()).credits).to.equal(460)
      await on.tell(on.invoice())
      expect((await on.account()).credits).to.equal(560)
      await on.tell(on.subscription({ ...large, ...next, currentPeriodEnd: START + 13 * PERIOD }))
      await on.tell(on.difference({}, { fromPlanId: 'large', planId: 'huge' }, 'late'))
      expect(await on.account()).to.include({ credits: 1_560, creditLimit: 1_000 })
    })

    it('that is paid periods later counts in its own', async () => {
      await on.tell(on.subscription(), on.invoice(), on.invoice(1), on.invoice(2))
      const current = { currentPeriodStart: START + 3 * PERIOD, currentPeriodEnd: START + 15 * PERIOD }
      await on.tell(on.subscription({ ...large, ...current }))
      await on.tell(on.difference({}, { changedAt: START + 1.5 * PERIOD, periodEnd: START + 2 * PERIOD }))
      expect((await on.account()).credits).to.equal(310 + 450)
    })

    it('of a period that was never paid, and is over, takes the length of the one that runs', async () => {
      await on.tell(on.subscription({ ...large, ...next }), on.difference())
      expect((await on.account()).credits).to.equal(460)
    })

    it('that is paid in the next period counts in its own, which was never paid, and not in the one before', async () => {
      await on.tell(on.subscription(), on.invoice())
      const current = { currentPeriodStart: START + 2 * PERIOD, currentPeriodEnd: START + 3 * PERIOD }
      await on.tell(on.subscription({ ...large, ...current }))
      await on.tell(on.difference({}, { changedAt: START + 1.5 * PERIOD, periodEnd: START + 2 * PERIOD }))
      expect((await on.account()).credits).to.equal(110 + 450)
    })

    for (const [what, isPaid] of [
      ['was not paid yet', false],
      ['is paid', true],
    ] as const) {
      it(`counts in the next period, which ${what}, while our row has the one before`, async () => {
        await on.tell(on.subscription(), on.invoice())
        if (isPaid) await on.tell(on.invoice(1))
        const { credits } = await on.account()
        const times = { changedAt: START + 1.5 * PERIOD, periodEnd: START + 2 * PERIOD }
        await on.tell(on.difference({}, times))
        expect((await on.account()).credits).to.equal(credits + 450)
      })
    }

    it('at the end of a period counts in the next one', async () => {
      await on.tell(on.subscription(), on.invoice())
      await on.tell(on.difference({}, { changedAt: START + PERIOD, periodEnd: START + 2 * PERIOD }))
      expect((await on.account()).credits).to.equal(1_010)
    })

    it('from a plan that is not known brings the difference to what was paid', async () => {
      await on.tell(on.subscription(large), on.difference({}, { fromPlanId: null }))
      expect((await on.account()).credits, 'nothing was paid').to.equal(10)
      await on.tell(on.invoice(), on.difference({}, { fromPlanId: null }, 'again'))
      expect((await on.account()).credits).to.equal(560)
    })

    it('brings several changes of one invoice, each once', async () => {
      const [up] = on.difference().changes as [PlanChange]
      const at = (day: number, from: string, to: string) => ({
        ...up,
        fromPlanId: from,
        planId: to,
        changedAt: START + (day * PERIOD) / 30,
      })
      const changes = [at(15, 'basic', 'large'), at(18, 'large', 'basic'), at(21, 'basic', 'huge')]
      await on.tell(on.subscription({ planId: 'huge' }), on.invoice(), on.difference({ changes }))
      expect((await on.account()).credits).to.equal(110 + 450 + 600)
    })

    it('to a lesser plan takes nothing, and the next period brings that one', async () => {
      const cycle = { planId: 'large', periodStart: START, periodEnd: START + PERIOD, newMoney: null }
      await on.tell(on.subscription(large), on.invoice(0, { cycle }))
      await on.tell(on.subscription(), on.difference({ amount: 0 }, { fromPlanId: 'large', planId: 'basic' }))
      expect(await on.account()).to.include({ credits: 1_010, creditLimit: 1_000 })
      await on.tell(on.difference({}, {}, 'again'))
      expect((await on.account()).credits, 'the period was paid for the better plan').to.equal(1_010)
      await on.tell(on.subscription(next), on.invoice(1))
      expect(await on.account()).to.include({ credits: 1_110, creditLimit: 100 })
    })

    it('gives back what its difference brought, in proportion, and may be paid anew', async () => {
      await on.tell(on.subscription(large), on.invoice(), on.difference())
      const back = (returnedInCents: number) => on.difference({ returnedInCents })
      await on.tell(back(500), back(500))
      expect((await on.account()).credits).to.equal(447)
      await on.tell(on.difference({}, {}, 'again'))
      expect((await on.account()).credits, 'a part of it is still paid').to.equal(447)
      await on.tell(back(2_000), back(2_000))
      expect((await on.account()).credits).to.equal(110)
      await on.tell(on.difference({}, {}, 'anew'))
      expect((await on.account()).credits).to.equal(560)
    })

    it('that begins a period is paid with what is left of the one before, first of all', async () => {
      await on.tell(on.subscription(), on.invoice())
      const cycle = (paidInCents: number, start: number) => ({
        planId: 'large',
        periodStart: START + start,
        periodEnd: START + PERIOD * 12,
        newMoney: { paidInCents, priceInCents: 5_000 },
      })
      await on.tell(on.difference({ amount: 0, changes: [], cycle: cycle(0, 1) }))
      expect(await on.account()).to.include({ credits: 110, creditLimit: 1_000 })
      await on.tell(on.difference({ amount: 4_000, changes: [], cycle: cycle(4_000, 2) }, {}, 'next'))
      expect((await on.account()).credits).to.equal(910)
    })
  })
})
