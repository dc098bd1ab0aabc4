/** Notifications that say that they come from Stripe (docs/architecture/billing.md, "Stripe"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { rejection, SECOND_SECRET, shop } from './shop.ts'

type Event = Record<string, unknown> & { data: { object: Record<string, unknown> } }

describe('a notification of Stripe', () => {
  const on = shop()

  /** A fresh event of this type, to be changed. */
  function event(type: string): Event {
    const found = on.current.double.events().find((each) => each.type === type)
    return structuredClone(found) as unknown as Event
  }

  function told(body: unknown, options: { secret?: string; at?: number } = {}) {
    return on.current.provider.notification(on.current.double.told.signed(body, options))
  }

  async function refused(body: unknown, options: { secret?: string; at?: number } = {}): Promise<string> {
    const error = await rejection(told(body, options))
    expect(error).to.include({ name: 'BadNotificationError' })
    expect(error.message).to.not.include('\n')
    return error.message
  }

  describe('names', () => {
    it('the subscription that it is about', async () => {
      const id = await on.current.subscribe()
      expect(await told(event('customer.subscription.updated'))).to.deep.equal([{ kind: 'subscription', id }])
    })

    it('the subscription of an invoice before it', async () => {
      const id = await on.current.subscribe()
      const both = [
        { kind: 'subscription', id },
        { kind: 'invoice', id: on.current.latestInvoice(id) },
      ]
      expect(await told(event('invoice.paid'))).to.deep.equal(both)
      expect(await told(event('checkout.session.completed'))).to.deep.equal(both)
    })

    it('the same where API versions before 2025-03-31 put it', async () => {
      on.current.double.version = 'old'
      const id = await on.current.subscribe()
      expect(await told(event('invoice.paid'))).to.deep.equal([
        { kind: 'subscription', id },
        { kind: 'invoice', id: on.current.latestInvoice(id) },
      ])
    })

    it('the checkout of a pack, whatever becomes of it', async () => {
      const { double } = on.current
      const late = await on.current.buyPack('pays-late')
      await double.settleLatePayments()
      expect(await told(event('checkout.session.completed'))).to.deep.equal([{ kind: 'pack', id: late }])
      const settled = event('checkout.session.async_payment_succeeded')
      expect(await told(settled)).to.deep.equal([{ kind: 'pack', id: late }])
      const failed = await on.current.buyPack('fails')
      expect(await told(event('checkout.session.async_payment_failed'))).to.deep.equal([
        { kind: 'pack', id: failed },
      ])
      const expired = await on.current.buyPack('abandons')
      expect(await told(event('checkout.session.expired'))).to.deep.equal([{ kind: 'pack', id: expired }])
    })

    it('what a refund or a dispute takes back: a pack, or an invoice', async () => {
      const { double } = on.current
      const pack = await on.current.buyPack()
      const invoice = on.current.latestInvoice(await on.current.subscribe())
      for (const reference of [
        { kind: 'pack', id: pack },
        { kind: 'invoice', id: invoice },
      ]) {
        const before = double.events().length
        double.money.failRefund(await double.refund(reference.id, 10))
        await double.dispute(reference.id, 'won')
        const events = double.events().slice(before)
        expect(events.map(({ type }) => type)).to.deep.equal([
          'refund.created',
          'charge.refunded',
          'refund.failed',
          'charge.dispute.created',
          'charge.dispute.funds_withdrawn',
          'charge.dispute.closed',
          'charge.dispute.funds_reinstated',
        ])
        for (const each of events) expect(await told(each), each.type).to.deep.equal([reference])
      }
    })

    it('what a refund takes back, also by its charge alone', async () => {
      const pack = await on.current.buyPack()
      await on.current.double.refund(pack)
      const refund = event('refund.created')
      refund.data.object.payment_intent = null
      expect(await told(refund)).to.deep.equal([{ kind: 'pack', id: pack }])
      refund.data.object.charge = null
      expect(await told(refund)).to.deep.equal([])
      refund.data.object.charge = 'ch_of-nobody_1'
      expect(await told(refund)).to.deep.equal([])
    })

    it('nothing when it is about what somebody else sells', async () => {
      const { double } = on.current
      const stranger = await double.strangerEvent()
      await double.refund(on.current.latestInvoice(stranger))
      for (const each of double.events()) {
        // What the invoice is of is found out where it is read.
        if (/^charge|^refund/.test(each.type)) expect(await told(each)).to.have.length(1)
        else expect(await told(each), each.type).to.deep.equal([])
      }
    })

    it('nothing when it is of a type that does not count', async () => {
      await on.current.subscribe()
      expect(await told({ ...event('invoice.paid'), type: 'invoice.upcoming' })).to.deep.equal([])
    })

    it('nothing when it is of the other mode than the key', async () => {
      await on.current.subscribe()
      const paid = event('invoice.paid')
      expect(await told({ ...paid, livemode: true })).to.deep.equal([])
      for (const key of ['sk_live_double', 'rk_live_double']) {
        const live = on.current.open({ key })
        expect(await live.notification(on.current.double.told.signed(paid))).to.deep.equal([])
        const signed = on.current.double.told.signed({ ...paid, livemode: true })
        expect(await live.notification(signed)).to.have.length(2)
      }
    })

    it('nothing new when it is repeated', async () => {
      await on.current.subscribe()
      const paid = event('invoice.paid')
      expect(await told(paid)).to.deep.equal(await told(paid))
    })

    it('nothing that cannot be asked for now, so that it is told again', async () => {
      await on.current.double.refund(await on.current.buyPack())
      on.current.double.api.failing = 500
      expect(await rejection(told(event('charge.refunded')))).to.include({ statusCode: 500 })
    })
  })

  describe('is refused', () => {
    it('without a signature, with a broken one, and with that of another secret', async () => {
      const { provider, double } = on.current
      await on.current.subscribe()
      const { body, signature } = double.told.signed(event('invoice.paid'))
      for (const header of [
        undefined,
        '',
        'nonsense',
        't=,v1=',
        't=NaN,v1=00',
        signature.replace(/v1=./, 'v1=x'),
        signature.replace('v1=', 'v0='),
      ]) {
        const error = await rejection(provider.notification({ body, header: () => header }))
        expect(error, header).to.include({ name: 'BadNotificationError' })
      }
      expect(await refused(event('invoice.paid'), { secret: 'whsec_another' })).to.match(/does not fit/)
    })

    it('without any secret', async () => {
      const signed = on.current.double.told.signed({})
      const error = await rejection(on.current.open({ webhookSecrets: [] }).notification(signed))
      expect(error).to.include({ name: 'BadNotificationError' })
    })

    it('when it was changed on the way', async () => {
      await on.current.subscribe()
      const { body, header } = on.current.double.told.signed(event('invoice.paid'))
      const changed = Buffer.from(body.toString().replace('invoice.paid', 'invoice.void'))
      const error = await rejection(on.current.provider.notification({ body: changed, header }))
      expect(error).to.include({ name: 'BadNotificationError' })
    })

    it('when it is older than 300 s, and not before', async () => {
      await on.current.subscribe()
      expect(await refused(event('invoice.paid'), { at: Date.now() - 302_000 })).to.match(/too old/)
      expect(await told(event('invoice.paid'), { at: Date.now() - 280_000 })).to.have.length(2)
    })

    it('but not when it is signed with the second secret', async () => {
      await on.current.subscribe()
      expect(await told(event('invoice.paid'), { secret: SECOND_SECRET })).to.have.length(2)
      const stale = { secret: SECOND_SECRET, at: Date.now() - 302_000 }
      expect(await refused(event('invoice.paid'), stale)).to.match(/too old/)
    })

    for (const body of ['', 'null', '[]', '"text"', '{', '7', '\ufeff{}', '['.repeat(100_000)]) {
      it(`when its body is ${JSON.stringify(body.slice(0, 10))}, rightly signed`, async () => {
        await refused(body)
      })
    }
  })

  describe('is judged field by field', () => {
    const HUGE = 'x'.repeat(300_000)
    const WRONG: readonly unknown[] = [undefined, null, true, 7, -1, 1e30, '', ' ', HUGE, [], {}, 'a b', 'é']
    /** Values that a field may have after all; a missing one is refused unless it is listed. */
    const FIELDS: Readonly<Record<string, readonly unknown[]>> = {
      id: [],
      object: [],
      type: [],
      created: [7],
      livemode: [true],
      api_version: [null, '', ' ', HUGE, 'a b', 'é'],
      data: [],
      'data.object': [],
      'data.object.id': [],
      'data.object.object': [],
      'data.object.metadata': [undefined, null, {}],
      'data.object.invoice': [undefined, null],
      'data.object.subscription': [undefined, null],
      'data.object.payment_intent': [undefined, null],
      'data.object.parent': [undefined, null, {}],
      'data.object.subscription_details': [undefined, null, {}],
    }

    for (const [path, fine] of Object.entries(FIELDS)) {
      it(path, async () => {
        await on.current.subscribe()
        for (const value of WRONG) {
          const changed = event('checkout.session.completed')
          put(changed, path, value)
          const what = `${path} = ${JSON.stringify(value)?.slice(0, 20)}`
          if (fine.includes(value) || (isEmpty(value) && fine.some(isEmpty))) {
            expect(await told(changed), what).to.be.an('array')
          } else expect(await refused(changed), what).to.include(path.split('.').at(-1)!)
        }
      })
    }

    it('the subscription of an invoice', async () => {
      await on.current.subscribe()
      for (const value of [7, '', HUGE, 'a b', [], {}, { id: 7 }]) {
        const changed = event('invoice.paid')
        put(changed, 'data.object.parent.subscription_details.subscription', value)
        expect(await refused(changed)).to.include('subscription')
      }
      const whole = event('invoice.paid')
      put(whole, 'data.object.parent.subscription_details.subscription', { id: 'sub_1' })
      expect(await told(whole)).to.deep.include({ kind: 'subscription', id: 'sub_1' })
    })

    it('metadata, which hold texts', async () => {
      await on.current.subscribe()
      for (const value of [7, null, {}, ['acme']]) {
        const changed = event('customer.subscription.updated')
        put(changed, 'data.object.metadata.penstock_customer', value)
        expect(await refused(changed)).to.include('metadata')
      }
      const inherited = event('customer.subscription.updated')
      put(inherited, 'data.object.metadata', JSON.parse('{"__proto__": "x"}'))
      expect(await told(inherited)).to.deep.equal([])
    })

    it('an object of another kind than its type is of', async () => {
      await on.current.subscribe()
      expect(await refused({ ...event('invoice.paid'), type: 'charge.refunded' })).to.include('data.object')
    })
  })
})

function isEmpty(value: unknown): boolean {
  return (
    typeof value === 'object' && value !== null && Object.keys(value).length === 0 && !Array.isArray(value)
  )
}

/** undefined removes the field. */
function put(object: object, path: string, value: unknown): void {
  const names = path.split('.')
  let place = object as Record<string, unknown>
  for (const name of names.slice(0, -1)) place = place[name] as Record<string, unknown>
  if (value === undefined) delete place[names.at(-1)!]
  else place[names.at(-1)!] = value
}
