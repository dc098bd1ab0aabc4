import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { FINALIZER, RESUME_ANNOTATION } from '../../../operator/resource.ts'
import { kubeOrSkip } from '../../kube/kube.ts'
import { number } from '../../support/json-number.ts'
import { sharedInstallation } from '../../support/shared-installation.ts'
import { type Sink, startSink } from '../../support/sink.ts'
import { condition, inTime, OperatorHarness } from './harness.ts'

/** Everything is right until somebody changes something: what the operator then does, and that it does no more. */
describe('a Buffer resource', function () {
  this.timeout(180_000)
  let harness: OperatorHarness
  let sink: Sink

  before(async function () {
    const cluster = await kubeOrSkip(this)
    harness = await OperatorHarness.open(cluster, await sharedInstallation())
    sink = await startSink()
    await harness.operate()
  })

  afterEach(() => harness.proxy.interfere())

  after(async () => {
    await harness?.close()
    await sink?.close()
  })

  it('becomes a buffer by one look and one creation', async () => {
    const name = harness.name('created')
    await harness.create(name, { displayName: 'Created', batch: { maxItems: 7 } })
    const { status, metadata } = await harness.untilReady(name)
    expect(metadata.finalizers).to.deep.equal([FINALIZER])
    expect(status).to.deep.include({
      observedGeneration: 1,
      bufferId: name,
      enabled: true,
      consecutiveDlqCount: 0,
      ingestPath: `/v1/ingest/${harness.projectId}/${name}`,
    })
    expect(status?.secretVersions?.map((each) => each.name)).to.deep.equal(['penstock'])
    expect(status?.conditions?.map(({ type, status, reason }) => [type, status, reason])).to.deep.equal([
      ['Ready', 'True', 'Synced'],
    ])
    const buffer = await harness.api.readBuffer(name)
    expect(buffer).to.deep.include({ name: 'Created', projectId: harness.projectId, enabled: true })
    expect(buffer.batch.maxItems).to.equal(7)
    expect(harness.proxy.seen(name).map(({ method, status }) => [method, status])).to.deep.equal([
      ['GET', 404],
      ['POST', 201],
    ])
    expect(await harness.untilEvent(name, 'Created')).to.deep.include({ type: 'Normal' })
    const { status: ingested } = await harness.api.ingest(harness.projectId, name, { group: 'a' })
    expect(ingested).to.equal(202)
  })

  it('may have another identifier than its name', async () => {
    const name = harness.name('named')
    const bufferId = harness.name('id')
    await harness.create(name, { bufferId })
    expect((await harness.untilReady(name)).status?.bufferId).to.equal(bufferId)
    expect((await harness.api.readBuffer(bufferId)).name).to.equal(name)
  })

  it('is the same buffer however its numbers are written', async () => {
    const name = harness.name('numbers')
    const spelled = (initialMs: string, maxItems: string) => ({
      batch: { maxItems: number(maxItems) },
      analytics: { sampleDeliveryLogs: number('-0.0') },
      throughput: { backoff: { initialMs: number(initialMs), maxMs: number('6e4') } },
    })
    const made = await harness.create(name, spelled('1e2', '7.0'))
    expect(made.spec.throughput.backoff).to.include({ initialMs: 100, maxMs: 60_000 })
    await harness.untilReady(name)
    const [creation] = harness.proxy.seen(name, 'POST')
    expect(JSON.parse(creation!.body)).to.have.nested.property('throughput.backoff.initialMs', 100)
    expect((await harness.api.readBuffer(name)).throughput.backoff.initialMs).to.equal(100)
    await harness.patch(name, { spec: spelled('1000E-1', '7') })
    await harness.untilReady(name)
    await harness.patch(name, { spec: { ...spelled('100', '0.7e1'), displayName: 'Renamed' } })
    await inTime(async () => (await harness.api.readBuffer(name)).name === 'Renamed')
    // Neither the first change of spelling nor the second is one to the service.
    expect(harness.proxy.seen(name, 'PATCH').map(({ body }) => JSON.parse(body))).to.deep.equal([
      { name: 'Renamed' },
    ])
  })

  it('is asked about by nobody when only annotations change', async () => {
    const name = harness.name('annotated')
    await harness.create(name)
    const before = await harness.untilReady(name)
    const other = harness.name('behind')
    await harness.patch(name, { metadata: { annotations: { 'example.com/note': 'x' }, labels: { a: 'b' } } })
    // One key runs after the other: once the later resource is ready, the earlier event was handled.
    await harness.create(other)
    await harness.untilReady(other)
    expect(harness.proxy.seen(name)).to.have.length(2)
    // The service tells of dead letters in its own time.
    const { deadLetters: _, ...after } = (await harness.read(name)).status!
    const { deadLetters: __, ...then } = before.status!
    expect(after).to.deep.equal(then)
  })

  it('is updated by one change of the fields that differ', async () => {
    const name = harness.name('updated')
    await harness.create(name, {
      delivery: { url: 'http://127.0.0.1:9/a', headers: { 'x-a': '1', 'x-b': '2' } },
    })
    const before = await harness.untilReady(name)
    await harness.patch(name, {
      spec: { batch: { maxItems: 3 }, delivery: { headers: { 'x-a': null, 'x-c': '3' } } },
    })
    const after = await harness.untilReady(name)
    expect(after.status?.observedGeneration).to.equal(2)
    expect(condition(after, 'Ready')?.lastTransitionTime).to.equal(
      condition(before, 'Ready')?.lastTransitionTime,
    )
    const changes = harness.proxy.seen(name, 'PATCH')
    expect(changes).to.have.length(1)
    expect(Object.keys(JSON.parse(changes[0]!.body))).to.have.members(['batch', 'delivery'])
    const buffer = await harness.api.readBuffer(name)
    expect(buffer.batch.maxItems).to.equal(3)
    expect(buffer.delivery.headers).to.deep.equal({ 'x-b': '2', 'x-c': '3' })
    expect((await harness.untilEvent(name, 'Updated')).note).to.include('batch, delivery')
  })

  it('that is edited 100 times in a row ends as it was last written, with far fewer changes', async () => {
    const name = harness.name('edited')
    await harness.create(name)
    await harness.untilReady(name)
    const edited = Promise.withResolvers<void>()
    harness.proxy.interfere(({ method }) => (method === 'PATCH' ? { until: edited.promise } : undefined))
    for (let edit = 1; edit <= 100; edit++) {
      await harness.patch(name, { spec: { batch: { maxItems: 100 + edit } } })
    }
    edited.resolve()
    const { metadata } = await harness.untilReady(name)
    expect(metadata.generation).to.equal(101)
    expect((await harness.api.readBuffer(name)).batch.maxItems).to.equal(200)
    const changes = harness.proxy
      .seen(name, 'PATCH')
      .map(({ body }) => JSON.parse(body).batch.maxItems as number)
    // The first waits for the last edit; what came meanwhile is one change, or a few where the watch lags.
    expect(changes.length).to.be.within(2, 20)
    // Never two passes at once: no change is overtaken by an older one.
    expect(changes).to.deep.equal([...changes].sort((a, b) => a - b))
    expect(changes.at(-1)).to.equal(200)
  })

  it('leaves alone what exists already, unless it may adopt it', async () => {
    const name = harness.name('there')
    await harness.api.createBuffer(harness.projectId, name, {
      name: 'by hand',
      delivery: { url: sink.url() },
    })
    await harness.create(name)
    const refused = await harness.untilCondition(name, 'Stalled', { reason: 'Conflict' })
    expect(condition(refused, 'Ready')).to.deep.include({ status: 'False', reason: 'Conflict' })
    expect(refused.status).to.not.have.property('bufferId')
    expect((await harness.api.readBuffer(name)).name).to.equal('by hand')
    expect(harness.proxy.seen(name).every(({ method }) => method === 'GET')).to.equal(true)

    await harness.patch(name, { spec: { adoptionPolicy: 'Adopt' } })
    const adopted = await harness.untilReady(name)
    expect(condition(adopted, 'Stalled')).to.equal(undefined)
    expect((await harness.api.readBuffer(name)).name).to.equal(name)
    expect(harness.proxy.seen(name, 'POST')).to.have.length(0)
    await harness.untilEvent(name, 'Adopted')
  })

  it('does not delete what it never had', async () => {
    const name = harness.name('not-mine')
    await harness.api.createBuffer(harness.projectId, name, { delivery: { url: sink.url() } })
    await harness.create(name)
    await harness.untilCondition(name, 'Stalled', { reason: 'Conflict' })
    await harness.remove(name)
    await harness.untilGone(name)
    expect(harness.proxy.seen(name, 'DELETE')).to.have.length(0)
    await harness.api.readBuffer(name)
  })

  it('has its buffer alone: one of the same name elsewhere gets none, whoever adopts', async () => {
    const name = harness.name('twice')
    const [here, there] = harness.namespaces as [string, string]
    await Promise.all([
      harness.create(name, { adoptionPolicy: 'Adopt' }, here),
      harness.create(name, { adoptionPolicy: 'Adopt' }, there),
    ])
    const states = await inTime(async () => {
      const both = await Promise.all([harness.read(name, here), harness.read(name, there)])
      const reasons = both.map((each) => condition(each, 'Ready')?.reason)
      return reasons.includes('Synced') && reasons.includes('Conflict') && both
    })
    expect(harness.proxy.seen(name, 'POST').filter(({ status }) => status === 201)).to.have.length(1)
    const loser = states.find((each) => condition(each, 'Ready')?.reason === 'Conflict')!
    await harness.remove(name, loser.metadata.namespace)
    await harness.untilGone(name, loser.metadata.namespace)
    await harness.api.readBuffer(name)
  })

  describe('whose buffer the service paused', () => {
    it('says so and leaves it, and resumes it by the annotation, by a change, and only then', async () => {
      const name = harness.name('paused')
      const url = sink.url(`/${name}`)
      sink.on(`/${name}`, { status: 400 })
      await harness.create(name, {
        enabled: true,
        delivery: { url },
        dlqPauseThreshold: 1,
        batch: { maxItems: 1 },
      })
      await harness.untilReady(name)
      await pause(name)

      await harness.patch(name, { metadata: { annotations: { [RESUME_ANNOTATION]: 'first' } } })
      await harness.untilReady(name)
      expect((await harness.api.readBuffer(name)).enabled).to.equal(true)
      await harness.untilEvent(name, 'Resumed')

      await pause(name)
      await harness.patch(name, { spec: { displayName: 'resumed by a change' } })
      await harness.untilReady(name)
      expect(await harness.api.readBuffer(name)).to.deep.include({
        enabled: true,
        name: 'resumed by a change',
      })
      expect(harness.proxy.seen(name, 'PATCH')).to.have.length(2)
    })

    /** Until the resource tells of it: somebody looks, as the operator itself does now and then. */
    async function pause(name: string): Promise<void> {
      await harness.api.ingest(harness.projectId, name, { group: 'a' })
      await inTime(async () => !(await harness.api.readBuffer(name)).enabled)
      await look(name)
      const resource = await harness.untilCondition(name, 'Paused', { reason: 'AutoPaused' })
      expect(condition(resource, 'Ready')).to.deep.include({ status: 'False', reason: 'AutoPaused' })
      expect(resource.status).to.deep.include({ enabled: false, consecutiveDlqCount: 1 })
    }

    /** A Secret that is written again asks for a look. */
    async function look(name: string): Promise<void> {
      await harness.patchSecret('penstock', { [name]: String(performance.now()) })
    }
  })
})
