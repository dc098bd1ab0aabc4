import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { kubeOrSkip } from '../../kube/kube.ts'
import { sharedInstallation } from '../../support/shared-installation.ts'
import { concerns, type Interference } from './admin-proxy.ts'
import { inTime, OperatorHarness } from './harness.ts'

const REFUSED_URL = 'http://169.254.169.254/latest'
const URL = 'http://127.0.0.1:9/hook'

/** Whose a buffer is that appears under an identifier after the operator failed to make one there. */
describe('a Buffer resource whose creation was refused', function () {
  this.timeout(180_000)
  let harness: OperatorHarness

  before(async function () {
    const cluster = await kubeOrSkip(this)
    harness = await OperatorHarness.open(cluster, await sharedInstallation())
    await harness.operate()
  })

  afterEach(() => harness.proxy.interfere())

  after(() => harness?.close())

  const byHand = (name: string) =>
    harness.api.createBuffer(harness.projectId, name, { name: 'by hand', delivery: { url: URL } })

  /** The buffer stays as it was made, also when the resource goes. */
  async function leaves(name: string): Promise<void> {
    const { status } = await harness.untilCondition(name, 'Stalled', { reason: 'Conflict' })
    expect(status).to.not.have.any.keys('bufferId', 'intentGeneration')
    expect((await harness.api.readBuffer(name)).name).to.equal('by hand')
    await harness.remove(name)
    await harness.untilGone(name)
    expect((await harness.api.readBuffer(name)).name).to.equal('by hand')
    expect(harness.proxy.seen(name, 'PATCH').concat(harness.proxy.seen(name, 'DELETE'))).to.have.length(0)
  }

  it('as invalid has nothing of what others make there', async () => {
    const name = harness.name('invalid')
    await harness.create(name, { delivery: { url: REFUSED_URL } })
    const { status } = await harness.untilCondition(name, 'Stalled', { reason: 'InvalidSpec' })
    expect(status).to.not.have.any.keys('bufferId', 'intentGeneration')
    await byHand(name)
    await harness.patch(name, { spec: { delivery: { url: URL } } })
    await leaves(name)
  })

  it('because the identifier is taken out of its sight has nothing of what others make there', async () => {
    const name = harness.name('taken')
    answerCreations(name, { status: 409, body: '{"error":"Buffer already exists"}' })
    await harness.create(name)
    const { status } = await harness.untilCondition(name, 'Stalled', { reason: 'Conflict' })
    expect(status).to.not.have.any.keys('bufferId', 'intentGeneration')
    harness.proxy.interfere()
    await byHand(name)
    await harness.patch(name, { spec: { displayName: 'as described' } })
    await leaves(name)
  })

  it('because another one was made in the same moment has nothing of that', async () => {
    const name = harness.name('raced')
    let made: Promise<unknown> | undefined
    harness.proxy.interfere((seen) => {
      if (seen.method !== 'POST' || !concerns(seen, name)) return undefined
      made ??= byHand(name)
      return { until: made }
    })
    await harness.create(name)
    await inTime(() => harness.proxy.seen(name, 'POST').some(({ status }) => status === 409))
    await leaves(name)
  })

  it('stands in nobody`s way: who may adopt what is there does', async () => {
    const name = harness.name('owned')
    const viewer = await harness.api.createKey({ role: 'viewer' })
    await harness.createSecret(name, { apiKey: viewer.secret })
    await harness.create(name, { credentialsRef: { name } })
    const refused = await harness.untilCondition(name, 'Stalled', { reason: 'Forbidden' })
    expect(refused.status).to.not.have.any.keys('bufferId', 'intentGeneration')
    await byHand(name)
    const there = harness.namespaces[1]!
    await harness.create(name, { adoptionPolicy: 'Adopt' }, there)
    await harness.untilReady(name, there)
    await harness.remove(name)
    await harness.untilGone(name)
    await harness.untilReady(name, there)
    await harness.api.readBuffer(name)
    await harness.api.expect(204, 'DELETE', `/v1/admin/api-keys/${viewer.keyId}`)
  })

  it('and which is deleted while the service asks for patience deletes nothing', async () => {
    const name = harness.name('patient')
    answerCreations(name, { status: 429, body: '{"error":"slowly"}', headers: { 'retry-after': '300' } })
    await harness.create(name)
    await harness.untilCondition(name, 'Reconciling', { reason: 'Throttled' })
    await byHand(name)
    await harness.remove(name)
    await harness.untilGone(name)
    expect(harness.proxy.seen(name, 'DELETE')).to.have.length(0)
    await harness.api.readBuffer(name)
  })

  function answerCreations(name: string, interference: Interference): void {
    harness.proxy.interfere((seen) =>
      seen.method === 'POST' && concerns(seen, name) ? interference : undefined,
    )
  }
})
