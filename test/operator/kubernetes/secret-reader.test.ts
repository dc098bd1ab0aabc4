import { join } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { hasStatus } from '../../../operator/kubernetes/api-error.ts'
import { ApiServer } from '../../../operator/kubernetes/api-server.ts'
import { kubeconfigAccess } from '../../../operator/kubernetes/kubeconfig.ts'
import { SecretReader } from '../../../operator/kubernetes/secret-reader.ts'
import type { SecretResource } from '../../../operator/reconcile/ports.ts'
import { type Kube, kubeOrSkip, namespace } from '../../kube/kube.ts'
import { apiServer } from './cluster.ts'

const { signal } = new AbortController()

describe('the values of Secrets', function () {
  this.timeout(120_000)
  let kube: Kube
  let api: ApiServer
  let secrets: string
  let reader: SecretReader
  /** Requests of the reader. */
  let asked: string[]
  let ms = 0
  const clock = { ...systemClock(), monotonic: () => ms }

  before(async function () {
    kube = await kubeOrSkip(this)
    secrets = `/api/v1/namespaces/${await namespace(kube, 'secrets')}/secrets`
    api = apiServer(kube, { onRequest: (method, path) => method === 'GET' && asked.push(path) })
  })

  beforeEach(() => {
    asked = []
    reader = new SecretReader(api, clock)
  })

  after(() => api?.close())

  const create = (name: string, value: string) =>
    api.request<SecretResource>('POST', secrets, { body: { metadata: { name }, stringData: { value } } })

  const change = (name: string, value: string) =>
    api.request<SecretResource>('PATCH', `${secrets}/${name}`, {
      body: { stringData: { value } },
      contentType: 'application/merge-patch+json',
    })

  async function read(known: SecretResource): Promise<string | undefined> {
    const secret = await reader.read(known, new Set(['value']), signal)
    return secret && Buffer.from(secret.data!.value!, 'base64').toString()
  }

  it('are read once as long as the Secret stays as it is, and anew when it changed', async () => {
    const made = await create('shared', 'one')
    for (let n = 0; n < 3; n++) expect(await read(made)).to.equal('one')
    expect(asked).to.have.length(1)
    const changed = await change('shared', 'two')
    expect(await read(changed)).to.equal('two')
    // Somebody who has not heard of the change yet.
    expect(await read(made)).to.equal('two')
    expect(asked).to.have.length(2)
  })

  it('are read again where the API server went back to an older state', async () => {
    const made = await create('restored', 'one')
    const changed = await change('restored', 'two')
    expect(await read(changed)).to.equal('two')
    ms += 60_000
    expect(await read(changed), 'as new as the watch').to.equal('two')
    expect(asked).to.have.length(1)
    expect(await read(made)).to.equal('two')
    expect(asked, 'the watch has told of an older one for a minute').to.have.length(2)
  })

  it('are those of the Secret that has the name now', async () => {
    const former = await create('anew', 'one')
    expect(await read(former)).to.equal('one')
    await api.request('DELETE', `${secrets}/anew`)
    const latter = await create('anew', 'two')
    expect(await read(latter)).to.equal('two')
  })

  it('of one that is gone are none, and of one that cannot be read an error', async () => {
    const gone = await create('gone', 'one')
    await api.request('DELETE', `${secrets}/gone`)
    expect(await reader.read(gone, new Set(['value']), signal)).to.equal(undefined)
    const config = new KubeConfig()
    config.loadFromFile(join(kube.dir, 'alice.kubeconfig'))
    const nobody = new ApiServer(kubeconfigAccess(config))
    const error = await new SecretReader(nobody, clock)
      .read(gone, new Set(['value']), signal)
      .catch((thrown: unknown) => thrown)
    nobody.close()
    expect(hasStatus(error, 403)).to.equal(true)
  })

  it('are kept for the ones that were used last, up to 2 MB of them', async () => {
    const large = 'x'.repeat(48_000)
    const made: SecretResource[] = []
    for (let n = 0; n < 33; n++) made.push(await create(`large-${n}`, large))
    for (const each of made) expect(await read(each)).to.equal(large)
    expect(asked, 'each was read').to.have.length(33)
    // In Base64, and with what they cost beside their values, 30 of them fit.
    for (const each of made.slice(3).reverse()) await read(each)
    expect(asked, 'the last 30 are kept').to.have.length(33)
    await read(made[0]!)
    expect(asked).to.have.length(34)
    await read(made[32]!)
    expect(asked, 'the one used longest ago made room').to.have.length(35)
  })

  it('that are too long for any secret are cut, and still too long', async () => {
    const made = await create('long', 'x'.repeat(700_000))
    expect(await read(made)).to.equal('x'.repeat(49_152))
  })
})
