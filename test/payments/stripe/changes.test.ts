/** What may have changed at Stripe since a time (docs/architecture/billing.md, "The sweep"). */
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { CUSTOMER, rejection, shop } from './shop.ts'

const DAY_MS = 86_400_000

describe('changes at Stripe', () => {
  const on = shop()

  async function changes(since: number, provider = on.current.provider): Promise<string[]> {
    const found: string[] = []
    for await (const { kind, id } of provider.changes(since)) found.push(`${kind} ${id}`)
    return found
  }

  /** All that can be bought, some of it more than once. */
  async function buyAll() {
    const subscriptionId = await on.current.subscribe()
    const packs = [await on.current.buyPack(), await on.current.buyPack('pays-late')]
    await on.current.double.settleLatePayments()
    await on.current.double.refund(packs[0]!)
    await on.current.double.dispute(on.current.latestInvoice(subscriptionId), 'lost')
    await on.current.double.strangerEvent()
    return [
      `subscription ${subscriptionId}`,
      `invoice ${on.current.latestInvoice(subscriptionId)}`,
      ...packs.map((id) => `pack ${id}`),
    ]
  }

  it('are told by events, each object once, without those of strangers', async () => {
    const all = await buyAll()
    expect(await changes(Date.now() - DAY_MS)).to.have.members(all)
    expect(on.current.double.requests('GET /v1/subscriptions')).to.equal(0)
  })

  it('are told by events of every type, in lists that Stripe takes', async () => {
    await changes(Date.now())
    const lists = on.current.double.api.asked.filter(({ path }) => path.startsWith('/v1/events'))
    const types = lists.map(({ path }) => new URL(path, 'http://stripe').searchParams)
    const names = types.map((params) => [...params].filter(([name]) => name.startsWith('types')))
    for (const list of names) expect(list.length).to.be.within(1, 20)
    expect(new Set(names.flat().map(([, name]) => name)).size).to.equal(23)
  })

  it('are none where nothing has happened since', async () => {
    await buyAll()
    await on.current.double.advance(1)
    expect(await changes(Date.now() + DAY_MS / 2)).to.deep.equal([])
  })

  it('are followed over several pages', async () => {
    const id = await on.current.subscribe()
    const { told, store } = on.current.double
    for (let index = 0; index < 130; index++) {
      told.tell('customer.subscription.updated', store.get('subscriptions', id))
    }
    expect(await changes(Date.now() - DAY_MS)).to.include(`subscription ${id}`)
    expect(on.current.double.requests('GET /v1/events')).to.be.above(2)
  })

  it('are all that there is when events do not go back so far', async () => {
    const all = await buyAll()
    on.current.double.api.asked.length = 0
    for (const since of [0, Date.now() - 30 * DAY_MS]) expect(await changes(since)).to.have.members(all)
    expect(on.current.double.requests('GET /v1/events')).to.equal(0)
  })

  it('are all that there is also where API versions before 2025-03-31 put it', async () => {
    const all = await buyAll()
    on.current.double.version = 'old'
    expect(await changes(0)).to.have.members(all)
  })

  it('begin with subscriptions, which invoices need', async () => {
    await buyAll()
    const kinds = (await changes(0)).map((name) => name.split(' ')[0])
    expect(kinds).to.deep.equal(['subscription', 'invoice', 'pack', 'pack'])
  })

  it('go on behind an event that cannot be understood, or is of the other mode', async () => {
    const all = await buyAll()
    const events = on.current.double.events()
    on.current.double.alter('events', events.at(-1)!.id, { data: {} as never })
    on.current.double.alter('events', events.at(-2)!.id, { livemode: true })
    on.current.double.forgiveShown()
    expect(await changes(Date.now() - DAY_MS)).to.have.members(all)
    on.current.double.forgiveShown()
  })

  it('are not known while Stripe is away', async () => {
    await on.current.subscribe()
    on.current.double.api.failing = 503
    expect(await rejection(changes(Date.now() - DAY_MS))).to.have.property('statusCode', 503)
    expect(await rejection(changes(0))).to.have.property('statusCode', 503)
  })

  it('go by the clock of the node', async () => {
    await on.current.subscribe()
    const clock = { ...systemClock(), now: () => Date.now() + 40 * DAY_MS }
    expect(await changes(Date.now(), on.current.open({ clock }))).to.have.length(2)
    expect(on.current.double.requests('GET /v1/events')).to.equal(0)
    expect(on.current.customers.has(CUSTOMER)).to.equal(true)
  })
})
