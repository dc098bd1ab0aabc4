/** Documents of api/vectors/buffers.json that the definition judges otherwise than the management API. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { kubeOrSkip } from '../../kube/kube.ts'
import { type BufferVector, bodyOf, bufferVectors } from '../../support/buffer-vectors.ts'
import { sharedInstallation } from '../../support/shared-installation.ts'
import { resourceOf } from '../crd/vector-resource.ts'
import { condition, OperatorHarness, type SpecFields } from './harness.ts'

describe('a Buffer resource that its definition takes and the service may not', function () {
  this.timeout(180_000)
  let harness: OperatorHarness

  before(async function () {
    const cluster = await kubeOrSkip(this)
    harness = await OperatorHarness.open(cluster, await sharedInstallation())
    const { projectId } = bufferVectors.base
    const taken = bufferVectors.documents.find(({ because }) => because === 'inUse')
    await thereIs('/v1/admin/projects', { projectId, name: projectId })
    await thereIs('/v1/admin/buffers', bodyOf(taken!, harness.api.customerId))
    await harness.operate()
  })

  after(() => harness?.close())

  for (const [reason, { why, resource }] of Object.entries(bufferVectors.reasons)) {
    if (resource === 'refused') continue
    it(`is ${resource}: ${why}`, async () => {
      const vectors = bufferVectors.documents.filter(({ because }) => because === reason)
      expect(vectors).not.to.deep.equal([])
      const names = await Promise.all(vectors.map(created))
      for (const [n, name] of names.entries()) await isTold(vectors[n]!, name, resource)
    })
  }

  /** The name of the resource. */
  async function created(vector: BufferVector): Promise<string> {
    const name = harness.name('vector')
    const body = bodyOf(vector, harness.api.customerId)
    const own = body.bufferId === bufferVectors.base.bufferId ? { bufferId: name } : {}
    const { resource, secrets } = resourceOf({ ...body, ...own }, name)
    await harness.createSecret(name, { ...secrets, apiKey: harness.api.key! })
    await harness.create(name, resource.spec as SpecFields)
    return name
  }

  async function isTold(
    { name: title, field, says }: BufferVector,
    name: string,
    resource: string,
  ): Promise<void> {
    if (resource === 'Ready') {
      await harness.untilReady(name)
      return
    }
    const found = await harness.untilCondition(name, 'Stalled', { reason: resource })
    expect(condition(found, 'Ready'), title).to.deep.include({ status: 'False', reason: resource })
    // That an identifier is taken is told in words of the operator.
    const words = resource === 'Conflict' ? `buffer ${found.spec.bufferId} exists already` : (says ?? field)
    expect(condition(found, 'Stalled')?.message, title).to.include(words)
  }

  async function thereIs(path: string, body: object): Promise<void> {
    const { status, text } = await harness.api.request('POST', path, body)
    expect(status, text).to.be.oneOf([201, 409])
  }
})
