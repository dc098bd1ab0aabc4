import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { kubeOrSkip } from '../../kube/kube.ts'
import { sharedInstallation } from '../../support/shared-installation.ts'
import { concerns } from './admin-proxy.ts'
import { condition, inTime, Stand } from './stand.ts'

/** What the service refuses, answers badly or not at all, and what others do to it behind the operator's back. */
describe('the operator and a service in trouble', function () {
  this.timeout(240_000)
  let stand: Stand

  before(async function () {
    const cluster = await kubeOrSkip(this)
    stand = await Stand.open(cluster, await sharedInstallation())
    await stand.operate({ PENSTOCK_VERIFY_SECONDS: '3' })
  })

  afterEach(() => stand.proxy.interfere())

  after(() => stand?.close())

  it('creates a buffer again that was deleted at the service', async () => {
    const name = stand.name('lost')
    await stand.create(name)
    await stand.untilReady(name)
    await stand.api.deleteBuffer(name)
    await inTime(() => stand.api.readBuffer(name))
    await stand.untilEvent(name, 'Recreated')
    await stand.untilReady(name)
  })

  it('sets back a buffer that was edited at the service, and says so', async () => {
    const name = stand.name('bent')
    await stand.create(name, { displayName: 'as described' })
    await stand.untilReady(name)
    await stand.api.patchBuffer(name, { name: 'as somebody else likes it', dlqPauseThreshold: 9 })
    await inTime(async () => (await stand.api.readBuffer(name)).name === 'as described')
    expect((await stand.api.readBuffer(name)).dlqPauseThreshold).to.equal(3)
    expect((await stand.untilEvent(name, 'Corrected')).note).to.include('dlqPauseThreshold, name')
  })

  it('leaves to others whether a buffer is enabled, unless the resource says it', async () => {
    const name = stand.name('switched')
    await stand.create(name)
    await stand.untilReady(name)
    await stand.api.patchBuffer(name, { enabled: false })
    await stand.untilCondition(name, 'Paused', { reason: 'Disabled' })
    await stand.patch(name, { spec: { enabled: true } })
    await stand.untilReady(name)
    await stand.api.patchBuffer(name, { enabled: false })
    await inTime(async () => (await stand.api.readBuffer(name)).enabled)
    await stand.patch(name, { spec: { enabled: false } })
    await inTime(async () => !(await stand.api.readBuffer(name)).enabled)
    expect((await stand.untilReady(name)).status?.enabled).to.equal(false)
  })

  it('rests after a 400 until the resource is edited', async () => {
    const name = stand.name('refused')
    await stand.create(name, { delivery: { url: 'http://169.254.169.254/latest' } })
    const refused = await stand.untilCondition(name, 'Stalled', { reason: 'InvalidSpec' })
    expect(condition(refused, 'Stalled')?.message).to.include('delivery.url')
    expect(condition(refused, 'Ready')?.status).to.equal('False')
    await stand.untilEvent(name, 'InvalidSpec')
    await stand.patch(name, { spec: { delivery: { url: 'http://127.0.0.1:9/hook' } } })
    const healed = await stand.untilReady(name)
    expect(condition(healed, 'Stalled')).to.equal(undefined)
  })

  for (const [title, interference] of [
    ['5xx', { status: 500 }],
    ['answers that are no answers of the service', { status: 404, body: '<html>' }],
    ['broken connections', 'reset'],
  ] as const) {
    it(`repeats after ${title}, later and later, and heals by itself`, async () => {
      const name = stand.name('again')
      stand.proxy.interfere((seen) => (concerns(seen, name) ? interference : undefined))
      await stand.create(name)
      const waiting = await stand.untilCondition(name, 'Reconciling', { reason: 'ServiceUnavailable' })
      expect(condition(waiting, 'Ready')?.status).to.equal('False')
      await inTime(() => stand.proxy.seen(name).length >= 6)
      const times = stand.proxy.seen(name).map(({ at }) => at)
      // Delays double: between the last two lies more than between the first two.
      expect(times.at(-1)! - times.at(-2)!).to.be.greaterThan(40)
      stand.proxy.interfere()
      const healed = await stand.untilReady(name)
      expect(condition(healed, 'Reconciling')).to.equal(undefined)
      await stand.untilEvent(name, 'ServiceUnavailable')
    })
  }

  it('keeps a resource ready while nobody can look at its buffer', async () => {
    const name = stand.name('unseen')
    await stand.create(name)
    await stand.untilReady(name)
    stand.proxy.interfere((seen) => (concerns(seen, name) ? { status: 503 } : undefined))
    const unseen = await stand.untilCondition(name, 'Reconciling', { reason: 'ServiceUnavailable' })
    expect(condition(unseen, 'Ready')).to.deep.include({ status: 'True', reason: 'Synced' })
    stand.proxy.interfere()
    await stand.untilReady(name)
  })

  it('waits as long as the service asks for', async () => {
    const name = stand.name('throttled')
    const slow = { status: 429, headers: { 'retry-after': '2' }, body: '{"error":"slowly"}' }
    stand.proxy.interfere((seen) => {
      const first = concerns(seen, name) && stand.proxy.seen(name).length <= 2
      return first ? slow : undefined
    })
    await stand.create(name)
    await stand.untilCondition(name, 'Reconciling', { reason: 'Throttled' })
    await stand.untilReady(name)
    const [first, second, third] = stand.proxy.seen(name).map(({ at }) => at) as [number, number, number]
    expect(second - first).to.be.at.least(1_990)
    expect(third - second).to.be.at.least(1_990)
  })

  it('makes 99 resources ready beside one that always fails', async () => {
    const names = Array.from({ length: 100 }, () => stand.name('many'))
    const [bad] = names as [string]
    stand.proxy.interfere((seen) => (concerns(seen, bad) ? { status: 500 } : undefined))
    await Promise.all(names.map((name) => stand.create(name)))
    await inTime(async () => {
      const made = (await stand.list()).filter(({ metadata }) => names.includes(metadata.name))
      const ready = made.filter((each) => condition(each, 'Ready')?.status === 'True')
      expect(ready, `${made.length} made`).to.have.length(99)
      expect(ready.map(({ metadata }) => metadata.name)).to.not.include(bad)
    })
    const failed = await stand.untilCondition(bad, 'Reconciling', { reason: 'ServiceUnavailable' })
    expect(condition(failed, 'Ready')?.status).to.equal('False')
  })
})

describe('an operator that is killed', function () {
  this.timeout(180_000)
  let stand: Stand

  before(async function () {
    const cluster = await kubeOrSkip(this)
    stand = await Stand.open(cluster, await sharedInstallation())
  })

  after(() => stand?.close())

  it('between a creation and its status knows its own buffer afterwards', async () => {
    const name = stand.name('cut')
    // The lease of a killed leader runs for 15 s more: the next one has its own.
    const first = await stand.operate({ PENSTOCK_LEASE_NAME: 'first' })
    stand.proxy.interfere(({ method }) => (method === 'POST' ? 'keep' : undefined))
    await stand.create(name)
    await inTime(() => stand.api.readBuffer(name))
    expect(condition(await stand.read(name), 'Ready')?.reason).to.equal('Creating')
    first.child.kill('SIGKILL')
    await first.exited()
    stand.proxy.interfere()

    await stand.operate({ PENSTOCK_LEASE_NAME: 'second' })
    const { status } = await stand.untilReady(name)
    expect(status?.bufferId).to.equal(name)
    expect(stand.proxy.seen(name, 'POST').map((each) => each.status)).to.deep.equal([0])
    await stand.remove(name)
    await stand.untilGone(name)
    expect((await stand.api.request('GET', `/v1/admin/buffers/${name}`)).status).to.equal(404)
  })

  it('leaves nothing to be asked of the service for what is in order', async () => {
    const name = stand.name('settled')
    await stand.create(name)
    await stand.untilReady(name)
    const asked = stand.proxy.seen(name).length
    const before = stand.operators.at(-1)!
    before.child.kill('SIGTERM')
    expect(await before.exited()).to.equal(0)
    // When each buffer is looked at next is drawn from this time.
    await stand.operate({ PENSTOCK_LEASE_NAME: 'third', PENSTOCK_VERIFY_SECONDS: '86400' })
    const behind = stand.name('behind')
    await stand.create(behind)
    await stand.untilReady(behind)
    expect(stand.proxy.seen(name)).to.have.length(asked)
  })
})
