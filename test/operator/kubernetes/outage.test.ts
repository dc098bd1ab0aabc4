import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { Controller } from '../../../operator/controller/controller.ts'
import { WorkQueue } from '../../../operator/controller/work-queue.ts'
import type { ApiServer } from '../../../operator/kubernetes/api-server.ts'
import { type Kube, namespace, restartKube, start, stopKube } from '../../kube/kube.ts'
import { eventually } from '../../support/eventually.ts'
import { TcpProxy } from '../../support/tcp-proxy.ts'
import { apiPort, apiServer, ConfigMaps, mirror, names } from './cluster.ts'

const RESOURCES = 1_000
const SLOW = { timeoutMs: 120_000 }

describe('an API server that is killed and comes back', function () {
  this.timeout(300_000)

  let kube: Kube | undefined
  let api: ApiServer
  let maps: ConfigMaps
  let space: string

  before(async function () {
    kube = await start({ parts: '' })
    if (!kube) return this.skip()
    api = apiServer(kube)
    space = await namespace(kube, 'outage')
    maps = new ConfigMaps(api, space)
    await maps.createMany(names('map', RESOURCES))
  })

  after(async () => {
    await api?.close()
    if (kube) await stopKube(kube)
  })

  it('loses nothing of 1,000 resources, is not stormed, and makes only those due that changed', async () => {
    let requests = 0
    const watcher = apiServer(kube!, { onRequest: () => requests++ })
    const followed = mirror(watcher, space)
    const passes = passesOf(followed)
    await followed.reflector.synced
    await eventually(() => passes.keys.length === RESOURCES, SLOW)
    passes.keys.length = 0
    requests = 0
    await restart(kube!)
    await changeSome()
    await eventually(() => expect(followed.shown()).to.deep.equal(AFTER_CHANGES), SLOW)
    await eventually(() => new Set(passes.keys).size === CHANGED.length, SLOW)
    await passes.stop()
    await followed.stop()
    await watcher.close()
    expect([...new Set(passes.keys)].sort()).to.deep.equal(CHANGED.map((name) => `${space}/${name}`))
    // The watch that succeeds, before it the attempts of an outage of some seconds, perhaps a list of three pages.
    expect(requests).to.be.within(1, 40)
  })

  it('shows what was deleted and made anew while the watch was cut off as gone and new', async () => {
    const proxy = await TcpProxy.to(apiPort(kube!))
    const watcher = apiServer(kube!, { connectMs: 1_000 }, proxy)
    const followed = mirror(watcher, space)
    await followed.reflector.synced
    const before = followed.cache.get(`${space}/map-0500`)!
    followed.changes.length = 0
    proxy.blackhole()
    await maps.delete('map-0500')
    const made = await maps.create('map-0500', 'anew')
    // A restarted API server remembers no events: what happened can only be found by a list.
    await restart(kube!)
    proxy.reset()
    proxy.heal()
    await eventually(() => followed.changes.length > 0, SLOW)
    await followed.stop()
    await watcher.close()
    await proxy.close()
    expect(followed.changes.map(({ before: gone, after: came }) => [uid(gone), uid(came)])).to.deep.equal([
      [before.metadata.uid, undefined],
      [undefined, made.metadata.uid],
    ])
    expect(followed.logged.some(({ message }) => / 410 /.test(message))).to.equal(true)
  })

  async function changeSome(): Promise<void> {
    for (const name of DELETED) await maps.delete(name)
    for (const name of TOUCHED) await maps.change(name, 'after')
    await maps.createMany(CREATED)
  }
})

const [DELETED, TOUCHED, CREATED] = [names('map', 10), names('map', 20).slice(10), names('new', 10)]
const CHANGED = [...DELETED, ...TOUCHED, ...CREATED].sort()
const AFTER_CHANGES = [
  ...TOUCHED.map((name) => `${name}=after`),
  ...names('map', RESOURCES)
    .slice(20)
    .map((name) => `${name}=1`),
  ...CREATED.map((name) => `${name}=1`),
].sort()

function uid(object: { metadata: { uid: string } } | undefined): string | undefined {
  return object?.metadata.uid
}

/** The keys whose passes a controller makes for the changes of a store, in order. */
function passesOf({ cache }: ReturnType<typeof mirror>) {
  const clock = systemClock()
  const queue = new WorkQueue(clock)
  const keys: string[] = []
  cache.subscribe(({ key }) => queue.add(key))
  const controller = new Controller({
    queue,
    clock,
    reconciler: {
      reconcile: async (key) => {
        keys.push(key)
        return {}
      },
    },
    log: { debug: () => {}, warn: () => {} },
    telemetry: { pass: () => {} },
  })
  controller.start()
  return { keys, stop: () => controller.stop() }
}

/** SIGKILL to the API server, then all parts anew with their data and ports. */
async function restart(kube: Kube): Promise<void> {
  process.kill(Number(readFileSync(`${kube.dir}/run/kube-apiserver.pid`, 'utf8')), 'SIGKILL')
  await stopKube(kube)
  await restartKube(kube, '')
}
