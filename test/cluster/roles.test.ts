/** Ingress, admin and actors as processes of their own: what happens at one is right at the others. */
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { connect } from '../../internal/postgres/connection.ts'
import type { Api } from '../support/api.ts'
import { Cluster, type ClusterNode } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { type Sink, type SinkRequest, startSink } from '../support/sink.ts'

interface Sent {
  key: string
  n: number
}

describe('a cluster of processes', function () {
  this.timeout(120_000)
  let cluster: Cluster
  let sink: Sink
  let gates: ClusterNode[]
  let actors: ClusterNode[]
  let admin: ClusterNode
  let adminApi: Api
  let projectId: string
  let accepted: Sent[]
  let bufferId: string
  let buffers = 0
  /** Credits: one an item. */
  let paid = 0

  before(async () => {
    cluster = await Cluster.create()
    sink = await startSink()
    admin = await cluster.start('admin')
    adminApi = cluster.api(admin)
    gates = await Promise.all([cluster.start('ingress'), cluster.start('ingress')])
    actors = await Promise.all([cluster.start('actor'), cluster.start('actor')])
    projectId = await adminApi.createProject()
  })

  after(async () => {
    await cluster.stop()
    await sink.close()
  })

  async function newBuffer(): Promise<void> {
    bufferId = `b${++buffers}`
    accepted = []
    await adminApi.createBuffer(projectId, bufferId, {
      batch: { maxItems: 5, idleTimeoutMs: 200, maxWaitFromFirstMs: 1_000 },
      throughput: { maxAttempts: 5, backoff: { initialMs: 100, maxMs: 100, multiplier: 1 } },
      delivery: { url: sink.url(`/${bufferId}`) },
    })
  }

  async function load(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const item = { key: `k${accepted.length % 12}`, n: accepted.length }
      const gate = gates[i % gates.length]!
      const payload = { group: item.key, n: item.n, messageId: `${bufferId}-${item.n}` }
      const answer = await cluster.api(gate).ingest(projectId, bufferId, payload)
      expect(answer.status, answer.text).to.equal(202)
      accepted.push(item)
    }
  }

  const batches = () => sink.requests(`/${bufferId}`)
  const keyOf = (headers: SinkRequest['headers']) => String(headers['x-idempotency-key'])

  function delivered(): Sent[] {
    return batches().flatMap((request) => {
      const { svc, items } = request.json() as {
        svc: { groupKey: string }
        items: { payload: { n: number } }[]
      }
      return items.map(({ payload }) => ({ key: svc.groupKey, n: payload.n }))
    })
  }

  const untilAllIsDelivered = () =>
    eventually(
      () => {
        const numbers = new Set(delivered().map(({ n }) => n))
        expect(accepted.filter(({ n }) => !numbers.has(n))).to.deep.equal([])
      },
      { timeoutMs: 60_000 },
    )

  function expectOrder(items: readonly Sent[]): void {
    const last = new Map<string, number>()
    for (const { key, n } of items) {
      expect(n, `order of ${key}`).to.be.above(last.get(key) ?? -1)
      last.set(key, n)
    }
  }

  const sharesOf = async (): Promise<number[]> =>
    Promise.all(
      actors.map(async ({ opsUrl }) => {
        const text = await (await fetch(`${opsUrl}/metrics`)).text()
        return text.split('\n').filter((line) => /^penstock_shard_epoch\{.* [1-9]/.test(line)).length
      }),
    )

  it('the ledger of every ingress is open before its first webhook', async () => {
    const db = connect(cluster.databaseUrl, { max: 1 })
    const [row] = await db<{ open: number }[]>`SELECT count(*)::int AS open FROM ledger_nodes`
    await db.end()
    expect(row?.open).to.equal(gates.length)
  })

  it('a buffer that was just made takes webhooks at every ingress, and actors deliver them', async () => {
    await newBuffer()
    await load(24)
    await untilAllIsDelivered()
    expect(delivered()).to.have.length(24)
    expectOrder(delivered())
  })

  it('a change is followed by all nodes within their bound', async () => {
    await newBuffer()
    await adminApi.patchBuffer(bufferId, { enabled: false })
    await eventually(
      async () => {
        const answers = await Promise.all(
          gates.map((gate) => cluster.api(gate).ingest(projectId, bufferId, { group: 'a' })),
        )
        expect(answers.map(({ status }) => status)).to.deep.equal([400, 400])
      },
      { timeoutMs: 20_000 },
    )
  })

  it('a duplicate at another ingress is one', async () => {
    await newBuffer()
    await adminApi.patchBuffer(bufferId, { batch: { idleTimeoutMs: 60_000, maxWaitFromFirstMs: 60_000 } })
    const payload = { group: 'a', messageId: 'm' }
    paid++
    const first = (await cluster.api(gates[0]!).ingest(projectId, bufferId, payload)).json()
    // A verdict that takes longer than a second is not waited for.
    await eventually(async () => {
      const again = (await cluster.api(gates[1]!).ingest(projectId, bufferId, payload)).json()
      expect(again).to.deep.equal({ ...first, duplicate: true })
    })
  })

  it('a rolling restart of every role sends nothing twice and fails no webhook', async () => {
    await newBuffer()
    await load(24)
    for (const [index, old] of actors.entries()) {
      actors[index] = await cluster.start('actor')
      const stopping = old.stop()
      await load(24)
      expect(await stopping).to.equal(0)
      await load(24)
    }
    for (const [index, old] of gates.entries()) {
      const other = gates[1 - index]!
      const next = await cluster.start('ingress')
      gates = [other]
      const stopping = old.stop()
      await load(24)
      expect(await stopping).to.equal(0)
      gates = index === 0 ? [next, other] : [other, next]
      await load(24)
    }
    const next = await cluster.start('admin')
    const stopping = admin.stop()
    await load(24)
    expect(await stopping).to.equal(0)
    adminApi = cluster.api(next)
    await load(24)
    await untilAllIsDelivered()
    expect(delivered()).to.have.length(accepted.length)
    expectOrder(delivered())
  })

  it('an actor that is killed loses nothing: what it had in flight comes again under its key', async () => {
    await newBuffer()
    await load(48)
    const stopping = actors[0]!.stop('SIGKILL')
    await load(48)
    await stopping
    actors = [actors[1]!, await cluster.start('actor')]
    await load(24)
    await untilAllIsDelivered()
    const bodies = new Map<string, string>()
    const first = batches().filter(({ headers, body }) => {
      const known = bodies.get(keyOf(headers))
      if (known !== undefined) expect(body.toString()).to.equal(known)
      bodies.set(keyOf(headers), body.toString())
      return known === undefined
    })
    const once = first.flatMap((request) => (request.json() as { items: unknown[] }).items.length)
    expect(once.reduce((sum, count) => sum + count, 0)).to.equal(accepted.length)
    await eventually(async () => expect(await sharesOf()).to.deep.equal([2, 2]))
  })

  it('each accepted item was paid once', async () => {
    await eventually(async () => expect(1_000_000 - (await adminApi.credits()).credits).to.equal(paid))
  })

  afterEach(() => {
    paid += accepted?.length ?? 0
    accepted = []
  })
})
