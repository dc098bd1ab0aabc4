import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { kubeOrSkip } from '../../kube/kube.ts'
import { sharedInstallation } from '../../support/shared-installation.ts'
import { concerns, type Interference } from './admin-proxy.ts'
import { inTime, Stand } from './stand.ts'

const REFUSED_URL = 'http://169.254.169.254/latest'
const URL = 'http://127.0.0.1:9/hook'

/** Whose a buffer is that appears under an identifier after the operator failed to make one there. */
describe('a Buffer resource whose creation was refused', function () {
  this.timeout(180_000)
  let stand: Stand

  before(async function () {
    const cluster = await kubeOrSkip(this)
    stand = await Stand.open(cluster, await sharedInstallation())
    await stand.operate()
  })

  afterEach(() => stand.proxy.interfere())

  after(() => stand?.close())

  const byHand = (name: string) =>
    stand.api.createBuffer(stand.projectId, name, { name: 'by hand', delivery: { url: URL } })

  /** The buffer stays as it was made, also when the resource goes. */
  async function leaves(name: string): Promise<void> {
    const { status } = await stand.untilCondition(name, 'Stalled', { reason: 'Conflict' })
    expect(status).to.not.have.any.keys('bufferId', 'intentGeneration')
    expect((await stand.api.readBuffer(name)).name).to.equal('by hand')
    await stand.remove(name)
    await stand.untilGone(name)
    expect((await stand.api.readBuffer(name)).name).to.equal('by hand')
    expect(stand.proxy.seen(name, 'PATCH').concat(stand.proxy.seen(name, 'DELETE'))).to.have.length(0)
  }

  it('as invalid has nothing of what others make there', async () => {
    const name = stand.name('invalid')
    await stand.create(name, { delivery: { url: REFUSED_URL } })
    const { status } = await stand.untilCondition(name, 'Stalled', { reason: 'InvalidSpec' })
    expect(status).to.not.have.any.keys('bufferId', 'intentGeneration')
    await byHand(name)
    await stand.patch(name, { spec: { delivery: { url: URL } } })
    await leaves(name)
  })

  it('because the identifier is taken out of its sight has nothing of what others make there', async () => {
    const name = stand.name('taken')
    answerCreations(name, { status: 409, body: '{"error":"Buffer already exists"}' })
    await stand.create(name)
    const { status } = await stand.untilCondition(name, 'Stalled', { reason: 'Conflict' })
    expect(status).to.not.have.any.keys('bufferId', 'intentGeneration')
    stand.proxy.interfere()
    await byHand(name)
    await stand.patch(name, { spec: { displayName: 'as described' } })
    await leaves(name)
  })

  it('because another one was made in the same moment has nothing of that', async () => {
    const name = stand.name('raced')
    let made: Promise<unknown> | undefined
    stand.proxy.interfere((seen) => {
      if (seen.method !== 'POST' || !concerns(seen, name)) return undefined
      made ??= byHand(name)
      return { until: made }
    })
    await stand.create(name)
    await inTime(() => stand.proxy.seen(name, 'POST').some(({ status }) => status === 409))
    await leaves(name)
  })

  it('stands in nobody`s way: who may adopt what is there does', async () => {
    const name = stand.name('owned')
    const viewer = await stand.api.createKey({ role: 'viewer' })
    await stand.createSecret(name, { apiKey: viewer.secret })
    await stand.create(name, { credentialsRef: { name } })
    const refused = await stand.untilCondition(name, 'Stalled', { reason: 'Forbidden' })
    expect(refused.status).to.not.have.any.keys('bufferId', 'intentGeneration')
    await byHand(name)
    const there = stand.namespaces[1]!
    await stand.create(name, { adoptionPolicy: 'Adopt' }, there)
    await stand.untilReady(name, there)
    await stand.remove(name)
    await stand.untilGone(name)
    await stand.untilReady(name, there)
    await stand.api.readBuffer(name)
    await stand.api.expect(204, 'DELETE', `/v1/admin/api-keys/${viewer.keyId}`)
  })

  it('and which is deleted while the service asks for patience deletes nothing', async () => {
    const name = stand.name('patient')
    answerCreations(name, { status: 429, body: '{"error":"slowly"}', headers: { 'retry-after': '300' } })
    await stand.create(name)
    await stand.untilCondition(name, 'Reconciling', { reason: 'Throttled' })
    await byHand(name)
    await stand.remove(name)
    await stand.untilGone(name)
    expect(stand.proxy.seen(name, 'DELETE')).to.have.length(0)
    await stand.api.readBuffer(name)
  })

  function answerCreations(name: string, interference: Interference): void {
    stand.proxy.interfere((seen) =>
      seen.method === 'POST' && concerns(seen, name) ? interference : undefined,
    )
  }
})
