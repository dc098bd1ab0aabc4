/** What the operator hears of the service without asking, and what people ask of it by annotations. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { PAUSE_ANNOTATION, RECONCILE_ANNOTATION, UNMANAGED_ANNOTATION } from '../../../operator/resource.ts'
import { kubeOrSkip } from '../../kube/kube.ts'
import { sharedInstallation } from '../../support/shared-installation.ts'
import { type Sink, startSink } from '../../support/sink.ts'
import { condition, inTime, OperatorHarness } from './harness.ts'

/** Nothing is compared unasked while these tests run. */
const ENV = { PENSTOCK_VERIFY_SECONDS: '86400' }

describe('a Buffer between two comparisons', function () {
  this.timeout(240_000)
  let harness: OperatorHarness
  let sink: Sink

  before(async function () {
    const cluster = await kubeOrSkip(this)
    harness = await OperatorHarness.open(cluster, await sharedInstallation())
    sink = await startSink()
    await harness.operate(ENV)
  })

  after(async () => {
    await harness?.close()
    await sink?.close()
  })

  const annotate = (name: string, annotations: Record<string, string | null>) =>
    harness.patch(name, { metadata: { annotations } })

  async function made(spec: object = {}): Promise<string> {
    const name = harness.name('told')
    await harness.create(name, spec)
    await harness.untilReady(name)
    return name
  }

  it('shows that the service paused it, why, and its dead letters', async () => {
    sink.on('/refuses', { status: 400 })
    const name = await made({
      delivery: { url: sink.url('/refuses') },
      batch: { maxItems: 1 },
      dlqPauseThreshold: 1,
    })
    await harness.api.ingest(harness.projectId, name, { group: 'a' })
    const { status } = await harness.untilCondition(name, 'Paused', { reason: 'AutoPaused' })
    expect(status).to.include({ enabled: false, pausedReason: 'consecutive_dead_letters' })
    expect(status?.host).to.equal(new URL(sink.url('/refuses')).host)
    await inTime(async () => (await harness.read(name)).status?.deadLetters === 1)
    const { lastDeadLetterTime } = (await harness.read(name)).status!
    expect(Math.abs(Date.parse(lastDeadLetterTime!) - Date.now())).to.be.lessThan(120_000)
  })

  it('is set back when somebody else changed it, and made again when it was deleted', async () => {
    const name = await made({ displayName: 'as described' })
    await harness.api.patchBuffer(name, { name: 'as somebody else likes it' })
    await inTime(async () => (await harness.api.readBuffer(name)).name === 'as described')
    await harness.api.deleteBuffer(name)
    await inTime(() => harness.api.readBuffer(name))
    await harness.untilEvent(name, 'Recreated')
  })

  it('is neither written nor asked about while nothing happens to it', async () => {
    const name = await made()
    // Its counts come once, with the first answer that has it.
    await inTime(async () => (await harness.read(name)).status?.deadLetters === 0)
    const { resourceVersion } = (await harness.read(name)).metadata
    const asked = harness.proxy.seen(name).length
    const states = () => harness.proxy.seen().filter(({ path }) => path.startsWith('/v1/admin/buffer-states'))
    const before = states().length
    // Each of these is told to the operator, and concerns another buffer.
    for (let n = 0; n < 3; n++) await made()
    await inTime(() => states().length > before)
    expect((await harness.read(name)).metadata.resourceVersion).to.equal(resourceVersion)
    expect(harness.proxy.seen(name)).to.have.length(asked)
    const keys = new Set(states().map(({ headers }) => headers['x-api-key']))
    expect(keys.size, 'one request waits for each key').to.equal(1)
  })

  it('is disabled while its pause annotation says so, and goes on afterwards', async () => {
    const name = await made()
    await annotate(name, { [PAUSE_ANNOTATION]: 'true' })
    const paused = await harness.untilCondition(name, 'Paused', { reason: 'PausedByAnnotation' })
    expect(condition(paused, 'Ready')?.status).to.equal('True')
    expect(await harness.api.readBuffer(name)).to.include({ enabled: false })
    await annotate(name, { [PAUSE_ANNOTATION]: null })
    await inTime(async () => (await harness.api.readBuffer(name)).enabled)
  })

  it('is left alone while its annotation says so, and set back afterwards', async () => {
    const name = await made({ displayName: 'as described' })
    await annotate(name, { [UNMANAGED_ANNOTATION]: 'true' })
    const held = await harness.untilCondition(name, 'Ready', { reason: 'Unmanaged' })
    expect(condition(held, 'Ready')?.status).to.equal('True')
    await harness.api.patchBuffer(name, { name: 'by hand' })
    await harness.patch(name, { spec: { dlqPauseThreshold: 7 } })
    await harness.untilCondition(name, 'Ready', { reason: 'Unmanaged' })
    const asked = harness.proxy.seen(name).length
    const another = await made()
    expect(await harness.api.readBuffer(name)).to.include({ name: 'by hand', dlqPauseThreshold: 3 })
    expect(harness.proxy.seen(name), `asked while ${another} was made`).to.have.length(asked)
    await annotate(name, { [UNMANAGED_ANNOTATION]: null })
    await harness.untilCondition(name, 'Ready', { reason: 'Synced' })
    expect(await harness.api.readBuffer(name)).to.include({ name: 'as described', dlqPauseThreshold: 7 })
  })

  it('that is deleted while it is left alone waits, with its buffer', async () => {
    const name = await made()
    await annotate(name, { [UNMANAGED_ANNOTATION]: 'true' })
    await harness.untilCondition(name, 'Ready', { reason: 'Unmanaged' })
    await harness.remove(name)
    await made()
    expect((await harness.read(name)).metadata.deletionTimestamp).to.be.a('string')
    await harness.api.readBuffer(name)
    await annotate(name, { [UNMANAGED_ANNOTATION]: null })
    await harness.untilGone(name)
  })

  it('is compared at once when its annotation asks for it, once a value', async () => {
    const name = await made()
    const looks = () => harness.proxy.seen(name, 'GET').length
    const before = looks()
    await annotate(name, { [RECONCILE_ANNOTATION]: 'first' })
    await inTime(async () => (await harness.read(name)).status?.lastHandledReconcile === 'first')
    expect(looks()).to.equal(before + 1)
    await annotate(name, { [RECONCILE_ANNOTATION]: 'second' })
    await inTime(async () => (await harness.read(name)).status?.lastHandledReconcile === 'second')
    expect(looks()).to.equal(before + 2)
  })
})
