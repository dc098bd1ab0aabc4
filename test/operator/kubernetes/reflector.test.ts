import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { KubeConfig } from '@kubernetes/client-node'
import { expect } from 'chai'
import { afterEach, before, beforeEach, describe, it } from 'mocha'
import { ApiError } from '../../../operator/kubernetes/api-error.ts'
import {
  ApiServer,
  type Call,
  type Query,
  type WatchCall,
  type WatchEvent,
} from '../../../operator/kubernetes/api-server.ts'
import { kubeconfigAccess } from '../../../operator/kubernetes/kubeconfig.ts'
import { PAGE } from '../../../operator/kubernetes/reflector.ts'
import { type Kube, kubeOrSkip, namespace } from '../../kube/kube.ts'
import { eventually } from '../../support/eventually.ts'
import { TcpProxy } from '../../support/tcp-proxy.ts'
import { apiPort, apiServer, ConfigMaps, kubeConfig, type Mirror, mirror, names } from './cluster.ts'

const SLOW = { timeoutMs: 60_000 }

describe('a reflector on a real API server', function () {
  this.timeout(180_000)

  let kube: Kube
  let space: string
  let api: ApiServer
  let maps: ConfigMaps
  const mirrors: Mirror[] = []
  const opened: ApiServer[] = []

  before(async function () {
    kube = await kubeOrSkip(this)
  })

  beforeEach(async () => {
    space = await namespace(kube, 'reflector')
    api = keep(apiServer(kube))
    maps = new ConfigMaps(api, space)
  })

  afterEach(async () => {
    await Promise.all(mirrors.splice(0).map((each) => each.stop()))
    await Promise.all(opened.splice(0).map((each) => each.close()))
  })

  it('lists many resources in pages, then watches from there', async () => {
    const all = names('map', 2 * PAGE + 50)
    await maps.createMany(all)
    const asked: Query[] = []
    const watcher = keep(apiServer(kube, { onRequest: (_method, _path, query) => asked.push(query) }))
    const followed = follow(mirror(watcher, space))
    await followed.reflector.synced
    expect(followed.shown()).to.deep.equal(all.map((name) => `${name}=1`))
    await maps.change('map-0007', 'changed')
    await eventually(() => followed.shown().includes('map-0007=changed'), SLOW)
    const lists = asked.filter(({ watch }) => !watch)
    expect(lists.map(({ limit }) => limit)).to.deep.equal([PAGE, PAGE, PAGE])
    const watches = asked.filter(({ watch }) => watch)
    expect(watches).to.have.length(1)
    expect(watches[0]!.allowWatchBookmarks).to.equal(true)
    expect(watches[0]!.timeoutSeconds).to.be.within(290, 590)
  })

  it('shows what is made, changed and deleted, without the fields that nobody reads', async () => {
    await maps.create('before')
    const followed = follow(mirror(api, space))
    await followed.reflector.synced
    await maps.create('a')
    await maps.change('a', '2')
    await maps.create('b')
    await maps.delete('before')
    await eventually(() => expect(followed.shown()).to.deep.equal(['a=2', 'b=1']), SLOW)
    expect(followed.cache.list().filter(({ metadata }) => metadata.managedFields)).to.deep.equal([])
    expect(followed.logged).to.deep.equal([])
  })

  it('holds nothing but what is read of the metadata where it asks for no more', async () => {
    await maps.create('before')
    const followed = follow(mirror(api, space, { metadataOnly: true }))
    await followed.reflector.synced
    await maps.create('a')
    await maps.annotate('a', {
      'example.com/large': 'x'.repeat(200_000),
      'buffering.penstock.dev/resume': '1',
    })
    await eventually(() => {
      const held = followed.cache.list().map(({ metadata, ...rest }) => [Object.keys(metadata).sort(), rest])
      const kind = { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1' }
      const names = ['name', 'namespace', 'resourceVersion', 'uid']
      expect(held).to.deep.equal([
        [names, kind],
        [names, kind],
      ])
    }, SLOW)
    expect(followed.logged).to.deep.equal([])
  })

  it('holds of annotations and other metadata what the operator reads', async () => {
    const followed = follow(mirror(api, space))
    await maps.create('a')
    await maps.annotate('a', {
      'example.com/large': 'x'.repeat(200_000),
      'buffering.penstock.dev/resume': '1',
    })
    await followed.reflector.synced
    await eventually(() => {
      const [held] = followed.cache.list().map(({ metadata }) => metadata)
      expect(Object.keys(held ?? {}).sort()).to.deep.equal([
        'annotations',
        'creationTimestamp',
        'name',
        'namespace',
        'resourceVersion',
        'uid',
      ])
      expect(held?.annotations).to.deep.equal({ 'buffering.penstock.dev/resume': '1' })
    }, SLOW)
  })

  it('is complete where a metadata-only list has nothing in it', async () => {
    const followed = follow(mirror(api, space, { metadataOnly: true }))
    await followed.reflector.synced
    await maps.create('a')
    await eventually(() => expect(followed.cache.list()).to.have.length(1), SLOW)
    expect(followed.logged).to.deep.equal([])
  })

  it('asks again for a page that was lost, and for no other one', async () => {
    const all = names('map', 2 * PAGE + 5)
    await maps.createMany(all)
    const losing = keep(new LostPages(kubeconfigAccess(kubeConfig(kube))))
    const followed = follow(mirror(losing, space))
    await followed.reflector.synced
    expect(followed.shown()).to.deep.equal(all.map((name) => `${name}=1`))
    const [first, second, third, ...more] = new Set(losing.tokens)
    expect(losing.tokens).to.deep.equal([first, second, second, third, third])
    expect([first, more]).to.deep.equal([undefined, []])
  })

  it('lists in one piece when the pages outlived their snapshot', async () => {
    const all = names('map', PAGE + 5)
    await maps.createMany(all)
    await compact(kube)
    const stale = keep(new StalePages(kubeconfigAccess(kubeConfig(kube))))
    const followed = follow(mirror(stale, space))
    await followed.reflector.synced
    expect(followed.shown()).to.deep.equal(all.map((name) => `${name}=1`))
    expect(followed.logged.map(({ message }) => message)).to.have.length(1)
    expect(followed.logged[0]!.message).to.match(/: 410 /)
    expect(stale.limits).to.deep.equal([PAGE, PAGE, undefined])
  })

  it('notices a connection that went silent, and opens another', async () => {
    const proxy = await TcpProxy.to(apiPort(kube))
    try {
      const watcher = keep(apiServer(kube, { connectMs: 1_000 }, proxy))
      // Well below a bookmark's minute: cut for being idle as well, which costs a request and no more.
      const followed = follow(mirror(watcher, space, { silentMs: 5_000 }))
      await followed.reflector.synced
      await maps.create('before')
      await eventually(() => followed.changes.length === 1, SLOW)
      followed.logged.length = 0
      // The watch is open and has just spoken.
      proxy.silence('down')
      await maps.create('meanwhile')
      await eventually(() => followed.logged.length > 0, SLOW)
      expect(followed.logged[0]!.message).to.match(/: silent for 5000 ms$/)
      expect(followed.shown()).to.deep.equal(['before=1'])
      proxy.heal()
      await eventually(() => expect(followed.shown()).to.deep.equal(['before=1', 'meanwhile=1']), SLOW)
      // The watch went on where it was: nothing was listed again.
      expect(followed.changes).to.have.length(2)
    } finally {
      await proxy.close()
    }
  })

  it('lists anew after a while, and so makes up for an event that was lost', async () => {
    const lossy = keep(new LossyWatches(kubeconfigAccess(kubeConfig(kube))))
    const followed = follow(mirror(lossy, space, { relistMs: 5_000 }))
    await followed.reflector.synced
    await maps.create('lost')
    await maps.create('seen')
    await eventually(() => followed.shown().includes('seen=1'), SLOW)
    expect(lossy.lost).to.equal(1)
    await eventually(() => expect(followed.shown()).to.deep.equal(['lost=1', 'seen=1']), SLOW)
    expect(followed.logged).to.deep.equal([])
  })

  it('waits as long as an API server that is too busy asks for', async () => {
    const busy = await BusyOnce.before(api)
    try {
      await maps.create('there')
      const config = new KubeConfig()
      config.loadFromClusterAndUser({ name: 'busy', server: busy.url, skipTLSVerify: true }, { name: 'none' })
      const followed = follow(mirror(keep(new ApiServer(kubeconfigAccess(config))), space))
      await followed.reflector.synced
      expect(followed.shown()).to.deep.equal(['there=1'])
      expect(followed.logged.map(({ message }) => message)).to.have.length(1)
      expect(followed.logged[0]!.message).to.match(/: 429 /)
      expect(busy.askedAt[1]! - busy.askedAt[0]!).to.be.at.least(2_000)
    } finally {
      busy.close()
    }
  })

  it('stops without a word while it lists, watches and waits', async () => {
    const proxy = await TcpProxy.to(apiPort(kube))
    try {
      const watching = mirror(api, space)
      await watching.reflector.synced
      await watching.stop()
      proxy.blackhole()
      const listing = mirror(keep(apiServer(kube, {}, proxy)), space)
      await listing.stop()
      expect([...watching.logged, ...listing.logged]).to.deep.equal([])
      proxy.reset()
      const waiting = mirror(keep(apiServer(kube, { connectMs: 50 }, proxy)), space)
      await eventually(() => waiting.logged.length > 0, SLOW)
      const before = waiting.logged.length
      await waiting.stop()
      expect(waiting.logged.length - before).to.be.at.most(1)
    } finally {
      await proxy.close()
    }
  })

  function follow(followed: Mirror): Mirror {
    mirrors.push(followed)
    return followed
  }

  function keep<T extends ApiServer>(server: T): T {
    opened.push(server)
    return server
  }
})

/** Between the first page and the second so much time passes that the snapshot of the first is gone. */
class StalePages extends ApiServer {
  readonly limits: unknown[] = []

  override async request<T>(
    method: Parameters<ApiServer['request']>[0],
    path: string,
    call: Call = {},
  ): Promise<T> {
    const { query = {} } = call
    this.limits.push(query.limit)
    const aged =
      query.continue === undefined ? query : { ...query, continue: asOfRevisionOne(query.continue) }
    return super.request<T>(method, path, { ...call, query: aged })
  }
}

/** Each second answer to a list is lost. */
class LostPages extends ApiServer {
  readonly tokens: unknown[] = []

  override async request<T>(
    method: Parameters<ApiServer['request']>[0],
    path: string,
    call: Call = {},
  ): Promise<T> {
    this.tokens.push(call.query?.continue)
    if (this.tokens.length % 2 === 0) throw new ApiError(`${method} ${path}: cut off`, 0)
    return super.request<T>(method, path, call)
  }
}

/** Its watches end after a second, and say nothing of what is called `lost`. */
class LossyWatches extends ApiServer {
  lost = 0

  override async *watch<T>(path: string, call: WatchCall): AsyncGenerator<WatchEvent<T>> {
    const short = { ...call, query: { ...call.query, timeoutSeconds: 1 } }
    for await (const event of super.watch<T>(path, short)) {
      const { metadata } = event.object as { metadata?: { name?: string } }
      if (metadata?.name === 'lost') this.lost++
      else yield event
    }
  }
}

/** In front of an API server: refuses the first request for two seconds, passes lists on, and has nothing to tell a watch. */
class BusyOnce {
  readonly askedAt: number[] = []
  readonly #server: Server

  private constructor(api: ApiServer) {
    this.#server = createServer(async (request, response) => {
      this.askedAt.push(performance.now())
      if (this.askedAt.length === 1) {
        response.writeHead(429, { 'Retry-After': '2', 'Content-Type': 'application/json' })
        response.end(JSON.stringify({ kind: 'Status', message: 'too many requests', code: 429 }))
        return
      }
      response.writeHead(200, { 'Content-Type': 'application/json' })
      if (request.url!.includes('watch=true')) response.flushHeaders()
      else response.end(JSON.stringify(await api.request('GET', request.url!)))
    })
  }

  static async before(api: ApiServer): Promise<BusyOnce> {
    const busy = new BusyOnce(api)
    await new Promise<void>((resolve) => busy.#server.listen(0, '127.0.0.1', resolve))
    return busy
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

/** Makes etcd forget all revisions before the current one. */
async function compact({ dir }: Kube): Promise<void> {
  const port = /ETCD_PORT=(\d+)/.exec(readFileSync(`${dir}/ports`, 'utf8'))![1]
  const ask = async (path: string, body: unknown) => {
    const options = { method: 'POST', body: JSON.stringify(body) }
    const answer = await fetch(`http://127.0.0.1:${port}/v3/kv/${path}`, options)
    expect(answer.status, await answer.clone().text()).to.equal(200)
    return (await answer.json()) as { header: { revision: string } }
  }
  const { header } = await ask('range', { key: Buffer.from('none').toString('base64') })
  await ask('compaction', { revision: header.revision })
}

/** A continue token names the revision of its snapshot; revision 1 is older than anything that etcd still has. */
function asOfRevisionOne(token: Query[string]): string {
  const fields = JSON.parse(Buffer.from(String(token), 'base64').toString()) as Record<string, unknown>
  return Buffer.from(JSON.stringify({ ...fields, rv: 1 })).toString('base64url')
}
