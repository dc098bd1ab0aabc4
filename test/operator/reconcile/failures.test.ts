import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { kubeOrSkip } from '../../kube/kube.ts'
import { sharedInstallation } from '../../support/shared-installation.ts'
import { concerns } from './admin-proxy.ts'
import { condition, inTime, OperatorHarness } from './harness.ts'

/** What the service refuses, answers badly or not at all, and what others do to it behind the operator's back. */
describe('the operator and a service in trouble', function () {
  this.timeout(240_000)
  let harness: OperatorHarness

  before(async function () {
    const cluster = await kubeOrSkip(this)
    harness = await OperatorHarness.open(cluster, await sharedInstallation())
    await harness.operate({ PENSTOCK_VERIFY_SECONDS: '3' })
  })

  afterEach(() => harness.proxy.interfere())

  after(() => harness?.close())

  it('creates a buffer again that was deleted at the service', async () => {
    const name = harness.name('lost')
    await harness.create(name)
    await harness.untilReady(name)
    await harness.api.deleteBuffer(name)
    await inTime(() => harness.api.readBuffer(name))
    await harness.untilEvent(name, 'Recreated')
    await harness.untilReady(name)
  })

  it('sets back a buffer that was edited at the service, and says so', async () => {
    const name = harness.name('bent')
    await harness.create(name, { displayName: 'as described' })
    await harness.untilReady(name)
    await harness.api.patchBuffer(name, { name: 'as somebody else likes it', dlqPauseThreshold: 9 })
    await inTime(async () => (await harness.api.readBuffer(name)).name === 'as described')
    expect((await harness.api.readBuffer(name)).dlqPauseThreshold).to.equal(3)
    expect((await harness.untilEvent(name, 'Corrected')).note).to.include('dlqPauseThreshold, name')
  })

  it('leaves to others whether a buffer is enabled, unless the resource says it', async () => {
    const name = harness.name('switched')
    await harness.create(name)
    await harness.untilReady(name)
    await harness.api.patchBuffer(name, { enabled: false })
    await harness.untilCondition(name, 'Paused', { reason: 'Disabled' })
    await harness.patch(name, { spec: { enabled: true } })
    await harness.untilReady(name)
    await harness.api.patchBuffer(name, { enabled: false })
    await inTime(async () => (await harness.api.readBuffer(name)).enabled)
    await harness.patch(name, { spec: { enabled: false } })
    await inTime(async () => !(await harness.api.readBuffer(name)).enabled)
    expect((await harness.untilReady(name)).status?.enabled).to.equal(false)
  })

  it('rests after a 400 until the resource is edited', async () => {
    const name = harness.name('refused')
    await harness.create(name, { delivery: { url: 'http://169.254.169.254/latest' } })
    const refused = await harness.untilCondition(name, 'Stalled', { reason: 'InvalidSpec' })
    expect(condition(refused, 'Stalled')?.message).to.include('delivery.url')
    expect(condition(refused, 'Ready')?.status).to.equal('False')
    await harness.untilEvent(name, 'InvalidSpec')
    await harness.patch(name, { spec: { delivery: { url: 'http://127.0.0.1:9/hook' } } })
    const healed = await harness.untilReady(name)
    expect(condition(healed, 'Stalled')).to.equal(undefined)
  })

  for (const [title, interference] of [
    ['5xx', { status: 500 }],
    ['answers that are no answers of the service', { status: 404, body: '<html>' }],
    ['broken connections', 'reset'],
  ] as const) {
    it(`repeats after ${title}, later and later, and heals by itself`, async () => {
      const name = harness.name('again')
      harness.proxy.interfere((seen) => (concerns(seen, name) ? interference : undefined))
      await harness.create(name)
      const waiting = await harness.untilCondition(name, 'Reconciling', { reason: 'ServiceUnavailable' })
      expect(condition(waiting, 'Ready')?.status).to.equal('False')
      await inTime(() => harness.proxy.seen(name).length >= 8)
      const times = harness.proxy.seen(name).map(({ at }) => at)
      // Delays double, from 5 ms. An answer about another resource may lead to one more attempt between two of them.
      expect(Math.max(...times.slice(1).map((at, n) => at - times[n]!))).to.be.greaterThan(40)
      harness.proxy.interfere()
      const healed = await harness.untilReady(name)
      expect(condition(healed, 'Reconciling')).to.equal(undefined)
      await harness.untilEvent(name, 'ServiceUnavailable')
    })
  }

  it('keeps a resource ready while nobody can look at its buffer', async () => {
    const name = harness.name('unseen')
    await harness.create(name)
    await harness.untilReady(name)
    harness.proxy.interfere((seen) => (concerns(seen, name) ? { status: 503 } : undefined))
    const unseen = await harness.untilCondition(name, 'Reconciling', { reason: 'ServiceUnavailable' })
    expect(condition(unseen, 'Ready')).to.deep.include({ status: 'True', reason: 'Synced' })
    harness.proxy.interfere()
    await harness.untilReady(name)
  })

  it('waits as long as the service asks for', async () => {
    const name = harness.name('throttled')
    const slow = { status: 429, headers: { 'retry-after': '2' }, body: '{"error":"slowly"}' }
    harness.proxy.interfere((seen) => {
      const first = concerns(seen, name) && harness.proxy.seen(name).length <= 2
      return first ? slow : undefined
    })
    await harness.create(name)
    await harness.untilCondition(name, 'Reconciling', { reason: 'Throttled' })
    await harness.untilReady(name)
    const [first, second, third] = harness.proxy.seen(name).map(({ at }) => at) as [number, number, number]
    expect(second - first).to.be.at.least(1_990)
    expect(third - second).to.be.at.least(1_990)
  })

  it('does not wait out what was asked for before the service came back', async () => {
    const names = Array.from({ length: 20 }, () => harness.name('patient'))
    const away = { status: 503, headers: { 'retry-after': '300' }, body: '{"error":"away"}' }
    harness.proxy.interfere(() => away)
    await Promise.all(names.map((name) => harness.create(name)))
    for (const name of names)
      await harness.untilCondition(name, 'Reconciling', { reason: 'ServiceUnavailable' })
    harness.proxy.interfere()
    const another = harness.name('another')
    await harness.create(another)
    for (const name of [another, ...names]) await harness.untilReady(name)
  })

  it('makes 99 resources ready beside one that always fails', async () => {
    const names = Array.from({ length: 100 }, () => harness.name('many'))
    const [bad] = names as [string]
    harness.proxy.interfere((seen) => (concerns(seen, bad) ? { status: 500 } : undefined))
    await Promise.all(names.map((name) => harness.create(name)))
    await inTime(async () => {
      const made = (await harness.list()).filter(({ metadata }) => names.includes(metadata.name))
      const ready = made.filter((each) => condition(each, 'Ready')?.status === 'True')
      expect(ready, `${made.length} made`).to.have.length(99)
      expect(ready.map(({ metadata }) => metadata.name)).to.not.include(bad)
    })
    const failed = await harness.untilCondition(bad, 'Reconciling', { reason: 'ServiceUnavailable' })
    expect(condition(failed, 'Ready')?.status).to.equal('False')
  })
})

describe('an operator that is killed', function () {
  this.timeout(180_000)
  let harness: OperatorHarness

  before(async function () {
    const cluster = await kubeOrSkip(this)
    harness = await OperatorHarness.open(cluster, await sharedInstallation())
  })

  after(() => harness?.close())

  it('between a creation and its status knows its own buffer afterwards', async () => {
    const name = harness.name('cut')
    // The lease of a killed leader runs for 15 s more: the next one has its own.
    const first = await harness.operate({ PENSTOCK_LEASE_NAME: 'first' })
    harness.proxy.interfere(({ method }) => (method === 'POST' ? 'keep' : undefined))
    await harness.create(name)
    await inTime(() => harness.api.readBuffer(name))
    expect(condition(await harness.read(name), 'Ready')?.reason).to.equal('Creating')
    first.child.kill('SIGKILL')
    await first.exited()
    harness.proxy.interfere()

    await harness.operate({ PENSTOCK_LEASE_NAME: 'second' })
    const { status } = await harness.untilReady(name)
    expect(status?.bufferId).to.equal(name)
    expect(harness.proxy.seen(name, 'POST').map((each) => each.status)).to.deep.equal([0])
    await harness.remove(name)
    await harness.untilGone(name)
    expect((await harness.api.request('GET', `/v1/admin/buffers/${name}`)).status).to.equal(404)
  })

  it('leaves nothing to be asked of the service for what is in order', async () => {
    const name = harness.name('settled')
    await harness.create(name)
    await harness.untilReady(name)
    const asked = harness.proxy.seen(name).length
    const before = harness.operators.at(-1)!
    before.child.kill('SIGTERM')
    expect(await before.exited()).to.equal(0)
    // When each buffer is looked at next is drawn from this time.
    await harness.operate({ PENSTOCK_LEASE_NAME: 'third', PENSTOCK_VERIFY_SECONDS: '86400' })
    const behind = harness.name('behind')
    await harness.create(behind)
    await harness.untilReady(behind)
    expect(harness.proxy.seen(name)).to.have.length(asked)
  })
})
