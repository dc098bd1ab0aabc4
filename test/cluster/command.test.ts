/** `npm run cluster` as somebody uses it: the processes that it names, killed by their ids. */
import { spawn } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { connect } from 'nats'

import { openDataFolder } from '../../internal/embedded/data-folder.ts'
import { findProcesses, isRunning } from '../../internal/embedded/process-identity.ts'
import { Api } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { type Service, startService } from '../support/service.ts'
import { shell, shellCommands } from '../support/shell-commands.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { tempFolder } from '../support/temp-folders.ts'

const START_MS = 90_000

interface Row {
  pid: number
  address: string
  ops: string
}

/** The table of the layout, by node. */
function layoutOf(output: string): Map<string, Row> {
  const lines = output.matchAll(/^ {2}([a-z]+(?:-\d)?) +(\d+) +(\S+) +(\S+)$/gm)
  return new Map(
    [...lines].map(([, name, pid, address, ops]) => [
      name!,
      { pid: Number(pid), address: address!, ops: ops! },
    ]),
  )
}

describe('npm run cluster', function () {
  this.timeout(120_000)
  const dataDir = join(tempFolder('cluster'), 'data')
  let service: Service
  let sink: Sink
  let adminApi: Api
  let ingested = 0
  const accepted = new Set<number>()

  before(async () => {
    sink = await startSink()
    service = await start()
  })

  after(async () => {
    if (service?.child.exitCode === null && service.child.signalCode === null) {
      service.child.kill('SIGTERM')
      await service.exited()
    }
    await sink?.close()
  })

  async function start(): Promise<Service> {
    const run = await startService({ dataDir, program: 'cmd/cluster/main.ts', env: { PENSTOCK_SHARDS: '3' } })
    const ready = eventually(() => run.output().includes('Try it:'), { timeoutMs: START_MS })
    const ended = run.exited().then((code) => {
      throw new Error(`the cluster ended with ${code}:\n${run.output()}`)
    })
    await Promise.race([ready, ended])
    ended.catch(() => {})
    return run
  }

  const nodes = () => layoutOf(service.output())
  const node = (name: string) => nodes().get(name)!
  const ownerKey = () => readFileSync(join(dataDir, 'owner-key'), 'utf8').trim()
  const gate = (index: number) => new Api(() => node(`ingress-${index}`).address, undefined, 'local')

  /** The shards that an actor runs, by its metrics. */
  async function shardsOf(name: string): Promise<number[]> {
    const text = await (await fetch(`${node(name).ops}/metrics`)).text()
    return [...text.matchAll(/^penstock_shard_epoch\{.*?shard="(\d+)".*?\} [1-9]/gm)]
      .map(([, shard]) => Number(shard))
      .sort()
  }

  const untilAllHaveTheirShare = () =>
    eventually(
      async () => {
        const shares = await Promise.all(['actor-1', 'actor-2', 'actor-3'].map(shardsOf))
        expect(shares.map(({ length }) => length)).to.deep.equal([1, 1, 1])
        expect(shares.flat()).to.have.members([0, 1, 2])
      },
      { timeoutMs: 30_000 },
    )

  async function inNats<T>(
    use: (
      manager: Awaited<ReturnType<Awaited<ReturnType<typeof connect>>['jetstreamManager']>>,
    ) => Promise<T>,
  ): Promise<T> {
    const servers = [1, 2, 3].map((index) => node(`nats-${index}`).address)
    const pass = readFileSync(join(dataDir, 'nats-1', 'password'), 'utf8').trim()
    const connection = await connect({ servers, user: 'penstock', pass })
    try {
      return await use(await connection.jetstreamManager())
    } finally {
      await connection.close()
    }
  }

  /** Sent until it is accepted, at both ingresses in turn; the message id makes one item of its repetitions. */
  async function send(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const n = ingested++
      const payload = { group: `k${n % 12}`, n, messageId: `m${n}` }
      await eventually(
        async () => (await gate(1 + (n % 2)).ingest('shop', 'shop-orders', payload)).status === 202,
        {
          timeoutMs: 30_000,
          everyMs: 100,
        },
      )
      accepted.add(n)
    }
  }

  function delivered(): Set<number> {
    const items = sink
      .requests('/orders')
      .flatMap((request) => (request.json() as { items: { payload: { n: number } }[] }).items)
    return new Set(items.map(({ payload }) => payload.n))
  }

  const untilAllIsDelivered = () =>
    eventually(
      () => {
        const seen = delivered()
        expect([...accepted].filter((n) => !seen.has(n))).to.deep.equal([])
      },
      { timeoutMs: 60_000 },
    )

  it('shows what runs where: three NATS servers, Postgres, an admin, two ingresses, three actors', async () => {
    const names = [
      'nats-1',
      'nats-2',
      'nats-3',
      'postgres',
      'admin',
      'ingress-1',
      'ingress-2',
      'actor-1',
      'actor-2',
      'actor-3',
    ]
    expect([...nodes().keys()]).to.deep.equal(names)
    for (const { pid } of nodes().values()) expect(isRunning(pid)).to.equal(true)
    for (const name of names.slice(4))
      expect(await (await fetch(`${node(name).ops}/ready`)).text()).to.equal('ready\n')
    for (const secret of ['owner-key', 'secret-key', 'nodes/actor-1.env', 'nats-2/nats.conf'])
      expect(statSync(join(dataDir, secret)).mode & 0o077, secret).to.equal(0)
  })

  it('stores every log and the leases three times', async () => {
    const copiesOf = () =>
      inNats(async (manager) => {
        const found = new Map<string, number>()
        for await (const { config, cluster } of manager.streams.list()) {
          expect(config.num_replicas, config.name).to.equal(3)
          found.set(config.name, 1 + (cluster?.replicas?.filter(({ current }) => current).length ?? 0))
        }
        return found
      })
    const logs = [0, 1, 2].flatMap((shard) => [`INBOX_${shard}`, `JOURNAL_${shard}`, `ARCHIVE_${shard}`])
    expect([...(await copiesOf()).keys()]).to.have.members([...logs, 'KV_penstock-leases'])
    // One that is written to may be a message behind at the moment.
    await eventually(async () => {
      const copies = await copiesOf()
      expect([...new Set(copies.values())], 'copies that are up to date').to.deep.equal([3])
    })
  })

  it('prints three lines to paste: a buffer, a webhook, its batch', async () => {
    const lines = service
      .output()
      .split('\n')
      .filter((line) => /^(curl|sleep)/.test(line))
    expect(lines).to.have.length(3)
    const { code, output } = await shell(lines.slice(0, 2).join('\n'))
    expect(code, output).to.equal(0)
    expect(output).to.include('"status":"accepted"')
    // The third one waits for two seconds: mostly long enough.
    await eventually(
      async () =>
        expect((await shell(lines[2]!)).output).to.include('"payload":{"customer":"ada","order":1}'),
      { timeoutMs: 30_000 },
    )
  })

  it('takes webhooks at both ingresses, each actor has its share, and all is delivered', async () => {
    adminApi = new Api(() => node('admin').address, ownerKey(), 'local')
    await adminApi.createProject('shop')
    await adminApi.createBuffer('shop', 'shop-orders', {
      batch: { maxItems: 5, idleTimeoutMs: 200, maxWaitFromFirstMs: 1_000 },
      throughput: { maxAttempts: 5, backoff: { initialMs: 100, maxMs: 100, multiplier: 1 } },
      delivery: { url: sink.url('/orders') },
    })
    await send(24)
    await untilAllIsDelivered()
    await untilAllHaveTheirShare()
  })

  it('is refused on a folder where one runs, in one line, and the one that runs goes on', async () => {
    const second = await startService({ dataDir, program: 'cmd/cluster/main.ts' })
    expect(await second.exited()).to.equal(1)
    const fatal = second.events.filter(({ level }) => level === 'fatal').map(({ msg }) => msg)
    expect(fatal).to.deep.equal([
      `the data folder ${dataDir} is in use by process ${service.child.pid} on ${hostname()}`,
    ])
    await send(2)
  })

  it('goes on when an actor and the NATS server that leads its inbox are killed', async () => {
    const leader = await inNats(async (manager) => (await manager.streams.info('INBOX_0')).cluster?.leader)
    const owner = await eventually(async () => {
      for (const name of ['actor-1', 'actor-2', 'actor-3'])
        if ((await shardsOf(name)).includes(0)) return name
      return false
    })
    const others = ['actor-1', 'actor-2', 'actor-3'].filter((name) => name !== owner)
    await send(24)
    for (const name of [owner, leader!]) process.kill(node(name).pid, 'SIGKILL')
    await send(48)
    await untilAllIsDelivered()
    // No group may stand on a shard of the killed one: then all is delivered before it is taken.
    await eventually(
      async () => {
        const shares = await Promise.all(others.map(shardsOf))
        expect(shares.flat().sort(), 'all that the killed one had was taken').to.deep.equal([0, 1, 2])
      },
      { timeoutMs: 30_000 },
    )
    const told = () =>
      service.events.filter(({ msg }) => msg === 'it ended, and is not started again by itself')
    await eventually(() => expect(told().map((event) => event.node)).to.have.members([owner, leader]))
    expect([owner, leader].map((name) => isRunning(node(name!).pid))).to.deep.equal([false, false])
  })

  it('takes a killed node back that is started again by the lines it gave', async () => {
    const killed = service.events.filter(({ again }) => again !== undefined)
    expect(killed).to.have.length(2)
    for (const { again } of killed) {
      const [command, ...args] = String(again).split(' ')
      spawn(command!, args, { detached: true, stdio: 'ignore' }).unref()
    }
    await untilAllHaveTheirShare()
    await send(12)
    await untilAllIsDelivered()
  })

  it('has its data and addresses again after a kill that leaves all others behind', async () => {
    const before = nodes()
    const left = processes()
    service.child.kill('SIGKILL')
    await service.exited()
    expect(left.filter(isRunning)).to.deep.equal(left)
    service = await start()
    expect(left.filter(isRunning)).to.deep.equal([])
    const moved = service.events.filter(({ taken }) => taken !== undefined)
    for (const [name, { address, ops }] of nodes())
      expect({ address, ops }, `${name}; ${JSON.stringify(moved)}`).to.deep.equal({
        address: before.get(name)?.address,
        ops: before.get(name)?.ops,
      })
    await send(12)
    await untilAllIsDelivered()
  })

  it('is walked through by the commands of its guide', async () => {
    await untilAllHaveTheirShare()
    const walk = shellCommands('docs/guide/cluster.md', '## Kill a node')
    const { code, output } = await shell(`D=${dataDir}\n${walk}`)
    expect(code, output).to.equal(0)
    const [before = '', after = ''] = output.split('actor-1 is gone')
    const owned = (text: string, name: string) =>
      new RegExp(`^${name}:(.*)$`, 'm').exec(text)?.[1]?.match(/\d+/g) ?? []
    expect(owned(before, 'actor-1')).to.have.length(1)
    expect(owned(after, 'actor-1')).to.deep.equal([])
    expect([...owned(after, 'actor-2'), ...owned(after, 'actor-3')]).to.have.members(['0', '1', '2'])
    expect(after.match(/"status":"accepted"/g)).to.have.length(2)
    expect(after).to.include('"state":"running"').and.include('actor-1 is back')
  })

  it('is looked at by the commands of the runbooks', async () => {
    const look = `D=${dataDir}\n${shellCommands('docs/operations/runbooks.md', '## Where to look')}`
    // Those of a node that was killed are on their way to another one.
    await eventually(
      async () => {
        const { code, output } = await shell(look)
        expect(code, output).to.equal(0)
        expect(output.match(/^\d +running /gm), output).to.have.length(3)
      },
      { timeoutMs: 30_000 },
    )
  })

  it('ends everything on SIGTERM with 0, what was started again by hand too', async () => {
    const pids = processes()
    const shown = new Set([...nodes().values()].map(({ pid }) => pid))
    expect(pids.filter((pid) => !shown.has(pid))).to.have.length(1)
    expect(pids).to.have.length(shown.size - 1)
    service.child.kill('SIGTERM')
    expect(await service.exited(), service.output()).to.equal(0)
    expect(pids.filter(isRunning)).to.deep.equal([])
    expect(processes()).to.deep.equal([])
    openDataFolder(dataDir).release()
  })

  /** Ids of all processes that work in the data folder. */
  function processes(): number[] {
    return [`--env-file=${dataDir}/`, `-c ${dataDir}/`, `-D ${dataDir}/`].flatMap(findProcesses)
  }
})
