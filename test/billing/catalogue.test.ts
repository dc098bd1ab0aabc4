import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { type Catalogue, parseCatalogue } from '../../internal/billing/catalogue.ts'
import { createCatalogueStore } from '../../internal/postgres/catalogue.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { freshDatabase } from '../support/servers.ts'

const plan = { planId: 'p', name: 'P', prices: { BRL: 100, USD: 30 }, creditsPerCycle: 10 }
const pack = { packId: 'k', credits: 5 }

function parse(value: unknown) {
  return parseCatalogue(Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)))
}

function problem(value: unknown): string {
  const parsed = parse(value)
  return parsed.ok ? 'accepted' : parsed.error
}

describe('the catalogue', () => {
  describe('as a file', () => {
    it('that comes with the service is good', () => {
      const file = new URL('../../internal/billing/catalogue/default.json', import.meta.url)
      const parsed = parseCatalogue(readFileSync(file))
      expect(parsed.ok).to.equal(true)
      if (!parsed.ok) return
      expect(parsed.value.plans).to.not.have.length(0)
      expect(parsed.value.packs).to.not.have.length(0)
    })

    it('has its defaults filled in', () => {
      expect(parse({ plans: [plan], packs: [pack] })).to.deep.equal({
        ok: true,
        value: {
          plans: [{ ...plan, priceInCents: 100, currency: 'BRL', isActive: true, offerId: null }],
          packs: [{ ...pack, isActive: true, offerId: null }],
        },
      })
    })

    it('may be without plans and packs', () => {
      expect(parse({ plans: [], packs: [] })).to.deep.equal({ ok: true, value: { plans: [], packs: [] } })
    })

    it('keeps what it says', () => {
      const said = {
        plans: [{ ...plan, currency: 'USD', priceInCents: 30, isActive: false, offerId: 'offer_1' }],
        packs: [{ ...pack, isActive: false, offerId: 'offer_2' }],
      }
      expect(parse(said)).to.deep.equal({ ok: true, value: said })
    })

    it('takes the legacy price from the only currency that there is', () => {
      const parsed = parse({ plans: [{ ...plan, prices: { USD: 30 } }], packs: [] })
      expect(parsed.ok && parsed.value.plans[0]).to.include({ currency: 'USD', priceInCents: 30 })
    })

    const bad: [unknown, string | RegExp][] = [
      ['{', 'is not valid JSON'],
      ['', 'is not valid JSON'],
      [[], /object/],
      [{ plans: [] }, 'packs is required'],
      [{ packs: [] }, 'plans is required'],
      [{ plans: [], packs: [], prices: [] }, /^prices /],
      [{ plans: {}, packs: [] }, /^plans /],
      [{ plans: [{ ...plan, planId: undefined }], packs: [] }, 'plans.0.planId is required'],
      [{ plans: [plan, { ...plan, planId: 'a/b' }], packs: [] }, /^plans\.1\.planId /],
      [{ plans: [{ ...plan, name: '' }], packs: [] }, /^plans\.0\.name /],
      [{ plans: [{ ...plan, name: 'a\u0000' }], packs: [] }, /^plans\.0\.name /],
      [{ plans: [{ ...plan, prices: {} }], packs: [] }, /^plans\.0\.prices /],
      [{ plans: [{ ...plan, prices: { EUR: 5 } }], packs: [] }, /^plans\.0\.prices\.EUR /],
      [{ plans: [{ ...plan, prices: { BRL: 0 } }], packs: [] }, /^plans\.0\.prices\.BRL /],
      [{ plans: [{ ...plan, prices: { BRL: 1.5 } }], packs: [] }, /^plans\.0\.prices\.BRL /],
      [{ plans: [{ ...plan, prices: { BRL: '100' } }], packs: [] }, /^plans\.0\.prices\.BRL /],
      [{ plans: [{ ...plan, creditsPerCycle: 0 }], packs: [] }, /^plans\.0\.creditsPerCycle /],
      [{ plans: [{ ...plan, isActive: 'yes' }], packs: [] }, /^plans\.0\.isActive /],
      [{ plans: [{ ...plan, offerId: '' }], packs: [] }, /^plans\.0\.offerId /],
      [{ plans: [{ ...plan, colour: 1 }], packs: [] }, /^plans\.0\.colour /],
      ['{"plans":[],"packs":[{"packId":"k","credits":5,"__proto__":{}}]}', /^packs\.0\.__proto__ /],
      [{ plans: [plan, plan], packs: [] }, 'plans.1.planId p stands there twice'],
      [{ plans: [], packs: [pack, { ...pack, credits: 6 }] }, 'packs.1.packId k stands there twice'],
      [{ plans: [{ ...plan, currency: 'EUR' }], packs: [] }, /^plans\.0\.currency /],
      [{ plans: [{ ...plan, prices: { BRL: 1 }, currency: 'USD' }], packs: [] }, /^plans\.0\.prices\.USD /],
      [{ plans: [{ ...plan, priceInCents: 99 }], packs: [] }, /^plans\.0\.priceInCents /],
      [{ plans: [], packs: [{ ...pack, credits: -1 }] }, /^packs\.0\.credits /],
      [{ plans: [], packs: [{ ...pack, priceInCents: 5 }] }, /^packs\.0\.priceInCents /],
    ]
    for (const [value, error] of bad) {
      it(`names what is wrong with ${JSON.stringify(value)}`, () => {
        const told = problem(value)
        if (typeof error === 'string') expect(told).to.equal(error)
        else expect(told).to.match(error)
        expect(told).to.not.include('\n')
      })
    }
  })

  describe('in the database', () => {
    let db: Database
    before(async () => {
      db = connect(await freshDatabase())
    })
    after(() => db.end())

    function catalogue(value: unknown): Catalogue {
      const parsed = parse(value)
      if (!parsed.ok) throw new Error(parsed.error)
      return parsed.value
    }

    it('is what was published last; what is gone is not active', async () => {
      const store = createCatalogueStore(db)
      const before = catalogue({
        plans: [plan, { ...plan, planId: 'large', creditsPerCycle: 100, offerId: 'o1' }],
        packs: [pack, { packId: 'j', credits: 5, offerId: 'o2' }],
      })
      await store.publish(before)
      expect(await store.plans()).to.deep.equal(before.plans)
      expect(await store.packs()).to.deep.equal([before.packs[1], before.packs[0]])
      const now = catalogue({
        plans: [{ ...plan, name: 'Renamed', prices: { USD: 7 }, offerId: 'o3' }],
        packs: [{ ...pack, credits: 6 }],
      })
      await store.publish(now)
      expect(await store.plans()).to.deep.equal([now.plans[0], { ...before.plans[1], isActive: false }])
      expect(await store.packs()).to.deep.equal([{ ...before.packs[1], isActive: false }, now.packs[0]])
      await store.publish(before)
      expect(await store.plans()).to.deep.equal(before.plans)
    })

    it('is published by several nodes at once', async () => {
      const store = createCatalogueStore(db)
      const plans = Array.from({ length: 20 }, (_, index) => ({ ...plan, planId: `plan-${index}` }))
      const wanted = catalogue({ plans, packs: [pack] })
      const reversed = { ...wanted, plans: wanted.plans.toReversed() }
      await Promise.all([wanted, reversed, wanted, reversed].map((each) => store.publish(each)))
      const stored = (await store.plans()).filter(({ isActive }) => isActive)
      expect(stored.map(({ planId }) => planId)).to.have.members(plans.map(({ planId }) => planId))
    })
  })
})
