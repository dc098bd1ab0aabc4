import { channel } from 'node:diagnostics_channel'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { ApiError } from '../../../operator/kubernetes/api-error.ts'
import type { ApiServer } from '../../../operator/kubernetes/api-server.ts'
import { type Kube, kubeOrSkip, namespace } from '../../kube/kube.ts'
import { TcpProxy } from '../../support/tcp-proxy.ts'
import { apiPort, apiServer, ConfigMaps } from './cluster.ts'

describe('requests to a real API server', function () {
  this.timeout(120_000)

  let kube: Kube
  let api: ApiServer
  let space: string

  before(async function () {
    kube = await kubeOrSkip(this)
    api = apiServer(kube)
    space = await namespace(kube, 'requests')
  })

  after(() => api?.close())

  it('share their connections', async () => {
    const fresh = apiServer(kube)
    let connections = 0
    const count = () => connections++
    channel('undici:client:connected').subscribe(count)
    try {
      for (let request = 0; request < 50; request++) await fresh.request('GET', '/version')
      // A second one is opened when the first has not yet been given back.
      expect(connections).to.be.within(1, 3)
    } finally {
      channel('undici:client:connected').unsubscribe(count)
      await fresh.close()
    }
  })

  it('reject with the status and the reason of the API server', async () => {
    const error = await failure(api.request('GET', `/api/v1/namespaces/${space}/configmaps/none`))
    expect(error).to.be.instanceOf(ApiError)
    expect(error.status).to.equal(404)
    expect(error.message).to.match(/^GET .*configmaps\/none: 404 configmaps "none" not found$/)
    const maps = new ConfigMaps(api, space)
    await maps.create('twice')
    expect((await failure(maps.create('twice'))).status).to.equal(409)
  })

  it('reject without a status where there is no answer in time, or no connection', async () => {
    const proxy = await TcpProxy.to(apiPort(kube))
    const through = apiServer(kube, { connectMs: 2_000 }, proxy)
    proxy.blackhole()
    expect((await failure(through.request('GET', '/version'))).status).to.equal(0)
    proxy.heal()
    await through.request('GET', '/version')
    proxy.silence('down')
    expect((await failure(through.request('GET', '/version', { timeoutMs: 200 }))).status).to.equal(0)
    await proxy.close()
    expect((await failure(through.request('GET', '/version'))).status).to.equal(0)
    await through.close()
  })

  it('reject with the reason of their signal', async () => {
    const reason = new Error('stopping')
    const aborted = AbortSignal.abort(reason)
    expect(await failure(api.request('GET', '/version', { signal: aborted }))).to.equal(reason)
  })
})

async function failure(work: Promise<unknown>): Promise<ApiError> {
  return work.then(
    () => expect.fail('it was accepted'),
    (error: ApiError) => error,
  )
}
