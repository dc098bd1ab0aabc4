import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { systemClock, systemRandomness } from '../../../internal/runtime/system-clock.ts'
import type { ApiServer } from '../../../operator/kubernetes/api-server.ts'
import { EventRecorder } from '../../../operator/kubernetes/events.ts'
import type { BufferResource } from '../../../operator/resource.ts'
import { type Kube, kubectlOk, kubeOrSkip, namespace } from '../../kube/kube.ts'
import { TcpProxy } from '../../support/tcp-proxy.ts'
import { apiPort, apiServer } from './cluster.ts'

interface StoredEvent {
  metadata: { name: string }
  reason: string
  type: string
  note: string
  regarding: { name: string; uid: string }
  series?: { count: number }
}

describe('Events on a real API server', function () {
  this.timeout(120_000)

  let kube: Kube
  let api: ApiServer
  let space: string
  let warnings: unknown[]

  before(async function () {
    kube = await kubeOrSkip(this)
    api = apiServer(kube)
  })

  beforeEach(async () => {
    space = await namespace(kube, 'events')
    warnings = []
  })

  after(() => api?.close())

  it('stand beside their resource, where kubectl finds them', async () => {
    const recorder = recorderOf(api)
    recorder.record(resource('orders'), 'Normal', 'Created', 'buffer orders was created')
    await recorder.close(10_000)
    const table = await kubectlOk(kube, ['-n', space, 'get', 'events'])
    expect(table).to.match(/Normal +Created +buffer\/orders +buffer orders was created/)
    expect(warnings).to.deep.equal([])
  })

  it('that say the same become one with a count', async () => {
    const recorder = recorderOf(api)
    for (let time = 0; time < 5; time++) recorder.record(resource('a'), 'Warning', 'Refused', 'no rights')
    recorder.record(resource('b'), 'Warning', 'Refused', 'no rights')
    await recorder.close(10_000)
    const events = await stored()
    expect(events.map(({ regarding, series }) => `${regarding.name} ${series?.count}`).sort()).to.deep.equal([
      'a 2',
      'b undefined',
    ])
  })

  it('take names and notes of any length', async () => {
    const recorder = recorderOf(api)
    const long = `${'a'.repeat(199)}.${'b'.repeat(53)}`
    recorder.record(resource(long), 'Normal', 'Updated', '€'.repeat(1_000))
    await recorder.close(10_000)
    expect(warnings).to.deep.equal([])
    const [event] = await stored()
    expect(event!.regarding.name).to.equal(long)
    expect(event!.note).to.equal('€'.repeat(340))
  })

  it('are dropped, not waited for, where the API server is away', async () => {
    const proxy = await TcpProxy.to(apiPort(kube))
    const away = apiServer(kube, {}, proxy)
    proxy.blackhole()
    const recorder = recorderOf(away)
    for (let index = 0; index < 10; index++) recorder.record(resource(`a${index}`), 'Normal', 'Created', 'x')
    await recorder.close(50)
    expect([warnings, await stored()]).to.deep.equal([[], []])
    await away.close()
    await proxy.close()
  })

  it('that cannot be written are told in the log and delay no others', async () => {
    const recorder = recorderOf(api)
    recorder.record(resource('NOT A NAME'), 'Normal', 'Created', 'x')
    recorder.record(resource('b'), 'Normal', 'Created', 'x')
    await recorder.close(10_000)
    expect(warnings).to.have.length(1)
    expect((await stored()).map(({ regarding }) => regarding.name)).to.deep.equal(['b'])
  })

  async function stored(): Promise<StoredEvent[]> {
    const path = `/apis/events.k8s.io/v1/namespaces/${space}/events`
    return (await api.request<{ items: StoredEvent[] }>('GET', path)).items
  }

  function recorderOf(through: ApiServer): EventRecorder {
    return new EventRecorder({
      api: through,
      instance: 'operator-0',
      clock: systemClock(),
      randomness: systemRandomness(),
      log: { warn: (fields) => warnings.push(fields) },
    })
  }

  function resource(name: string): BufferResource {
    return {
      metadata: { name, namespace: space, uid: `uid-${name}`, resourceVersion: '7' },
    } as BufferResource
  }
})
