import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { ApiError } from '../../../operator/kubernetes/api-error.ts'
import type { ApiServer } from '../../../operator/kubernetes/api-server.ts'
import { BufferResourceWriter } from '../../../operator/kubernetes/buffer-writer.ts'
import { StaleError } from '../../../operator/reconcile/ports.ts'
import { API_VERSION, type BufferResource, FINALIZER, KIND, PLURAL } from '../../../operator/resource.ts'
import { type Kube, kubeOrSkip, namespace } from '../../kube/kube.ts'
import { defineBuffers } from '../crd/site.ts'
import { apiServer } from './cluster.ts'

const ready = {
  type: 'Ready',
  status: 'True',
  observedGeneration: 1,
  lastTransitionTime: '2030-01-01T00:00:00Z',
  reason: 'Synced',
  message: 'as desired',
} as const

describe('writes to Buffer resources', function () {
  this.timeout(120_000)

  let kube: Kube
  let api: ApiServer
  let writer: BufferResourceWriter
  let path: string

  before(async function () {
    kube = await kubeOrSkip(this)
    await defineBuffers(kube)
    api = apiServer(kube)
    writer = new BufferResourceWriter(api)
    path = `/apis/${API_VERSION}/namespaces/${await namespace(kube, 'writer')}/${PLURAL}`
  })

  after(() => api?.close())

  it('replace the whole status and nothing else', async () => {
    const made = await create('status')
    const first = await writer.applyStatus(made, {
      observedGeneration: 1,
      bufferId: 'status',
      ingestPath: '/v1/ingest/shop/status',
      conditions: [ready],
    })
    expect(first.status).to.deep.equal({
      observedGeneration: 1,
      bufferId: 'status',
      ingestPath: '/v1/ingest/shop/status',
      conditions: [ready],
    })
    const second = await writer.applyStatus(first, { observedGeneration: 2, bufferId: 'status' })
    expect(second.status).to.deep.equal({ observedGeneration: 2, bufferId: 'status' })
    expect([second.spec, second.metadata.generation]).to.deep.equal([made.spec, made.metadata.generation])
  })

  it('that change nothing leave the resource as it is', async () => {
    const made = await create('same')
    const status = { observedGeneration: 1, conditions: [ready] }
    const first = await writer.applyStatus(made, status)
    const second = await writer.applyStatus(first, status)
    expect(second.metadata.resourceVersion).to.equal(first.metadata.resourceVersion)
  })

  it('set and remove finalizers', async () => {
    const made = await create('finalizers')
    const held = await writer.setFinalizers(made, [FINALIZER])
    expect(held.metadata.finalizers).to.deep.equal([FINALIZER])
    const free = await writer.setFinalizers(held, [])
    expect(free.metadata.finalizers).to.equal(undefined)
  })

  it('are refused when the resource changed since it was read', async () => {
    const made = await create('changed')
    await writer.setFinalizers(made, [FINALIZER])
    expect(await failure(writer.setFinalizers(made, []))).to.be.instanceOf(StaleError)
    expect(await failure(writer.applyStatus(made, { observedGeneration: 1 }))).to.be.instanceOf(StaleError)
  })

  it('are refused when the resource was deleted, and made anew or not', async () => {
    const made = await create('anew')
    await api.request('DELETE', `${path}/anew`)
    const status = { observedGeneration: 1 }
    expect((await failure(writer.applyStatus(made, status))).status).to.equal(404)
    expect((await failure(writer.setFinalizers(made, [FINALIZER]))).status).to.equal(404)
    await create('anew')
    expect(await failure(writer.applyStatus(made, status))).to.be.instanceOf(StaleError)
    expect(await failure(writer.setFinalizers(made, [FINALIZER]))).to.be.instanceOf(StaleError)
  })

  function create(name: string): Promise<BufferResource> {
    const spec = {
      projectId: 'shop',
      groupKey: { mode: 'jsonpath', path: '$.customer' },
      delivery: { url: 'https://receiver.example.com/webhooks' },
      credentialsRef: { name: 'penstock-api-key' },
    }
    return api.request('POST', path, {
      body: { apiVersion: API_VERSION, kind: KIND, metadata: { name }, spec },
    })
  }
})

async function failure(work: Promise<unknown>): Promise<ApiError> {
  return work.then(
    () => expect.fail('it was accepted'),
    (error: ApiError) => error,
  )
}
