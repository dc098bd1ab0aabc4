/**
 * A rolling upgrade to a version that builds bodies in another way, with destinations that fail meanwhile: whoever
 * has a batch in hand, its key names the body that was sealed under it. The newer version is this one with another
 * `internal/shard/batches/body.ts` (see `newer-serializer.ts`).
 */
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { Api } from '../support/api.ts'
import { Cluster, type ClusterNode } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { type Sink, type SinkRequest, startSink } from '../support/sink.ts'

const NEWER = { NODE_OPTIONS: `--import=${join(import.meta.dirname, 'newer-serializer.ts')}` }
/** Enough that each of two nodes has some on each of its shards. */
const GROUPS = 40
const PATIENT = { timeoutMs: 60_000, everyMs: 50 }
const WAITING = 'sealed batches wait for a node of a newer version'

interface Batch {
  readonly key: string
  readonly body: string
  readonly group: string
  readonly numbers: number[]
  readonly newer: boolean
}

describe('two versions of the program side by side', function () {
  this.timeout(120_000)
  let cluster: Cluster
  let sink: Sink
  let adminApi: Api
  let gate: Api
  let projectId: string
  let sent: { group: string; n: number }[]

  beforeEach(async () => {
    sent = []
    cluster = await Cluster.create()
    sink = await startSink()
    sink.otherwise({ status: 500 })
    adminApi = cluster.api(await cluster.start('admin'))
    gate = cluster.api(await cluster.start('ingress'))
    projectId = await adminApi.createProject()
    await adminApi.createBuffer(projectId, 'b', {
      batch: { maxItems: 2, idleTimeoutMs: 100, maxWaitFromFirstMs: 500 },
      throughput: { maxAttempts: 5, backoff: { initialMs: 15_000, maxMs: 15_000, multiplier: 1 } },
      delivery: { url: sink.url('/') },
    })
  })

  afterEach(async () => {
    await cluster.stop()
    await sink.close()
  })

  async function load(): Promise<void> {
    for (let i = 0; i < GROUPS; i++) {
      const item = { group: `g${i}`, n: sent.length }
      const answer = await gate.ingest(projectId, 'b', item)
      expect(answer.status, answer.text).to.equal(202)
      sent.push(item)
    }
  }

  function batches(requests: readonly SinkRequest[] = sink.requests()): Batch[] {
    return requests.map(({ headers, body }) => {
      const { svc, items, v } = JSON.parse(body.toString()) as {
        svc: { groupKey: string }
        items: { payload: { n: number } }[]
        v?: number
      }
      return {
        key: String(headers['x-idempotency-key']),
        body: body.toString(),
        group: svc.groupKey,
        numbers: items.map(({ payload }) => payload.n),
        newer: v === 2,
      }
    })
  }

  function attempted(from: number): Promise<void> {
    return eventually(() => {
      const seen = new Set(batches().flatMap(({ numbers }) => numbers))
      expect(sent.filter(({ n }) => n >= from && !seen.has(n))).to.deep.equal([])
    }, PATIENT)
  }

  const shardsOf = async ({ opsUrl }: ClusterNode): Promise<number> => {
    const text = await (await fetch(`${opsUrl}/metrics`)).text()
    return text.split('\n').filter((line) => /^penstock_shard_epoch\{.* [1-9]/.test(line)).length
  }

  const untilItHas = (actor: ClusterNode, holds: (shards: number) => boolean) =>
    eventually(async () => holds(await shardsOf(actor)), PATIENT)

  /** What holds of everything sent: a key has one body, an item one key, a group its order. */
  function expectOneKeyOneBody(): void {
    const bodies = new Map<string, string>()
    const keys = new Map<number, string>()
    const last = new Map<string, number>()
    for (const { key, body, group, numbers } of batches()) {
      expect(body, key).to.equal(bodies.get(key) ?? body)
      if (!bodies.has(key)) {
        expect(numbers[0], `order of ${group}`).to.be.above(last.get(group) ?? -1)
        last.set(group, numbers.at(-1)!)
      }
      bodies.set(key, body)
      for (const n of numbers) expect(key, `key of item ${n}`).to.equal(keys.get(n) ?? key)
      for (const n of numbers) keys.set(n, key)
    }
    expect([...keys.keys()].sort((a, b) => a - b)).to.deep.equal(sent.map(({ n }) => n))
  }

  it('the newer one sends what the older one sealed as it was sealed', async () => {
    const older = await cluster.start('actor')
    await load()
    await attempted(0)
    const newer = await cluster.start('actor', NEWER)
    await untilItHas(newer, (shards) => shards > 0)
    await older.stop('SIGKILL')
    await untilItHas(newer, (shards) => shards === 4)
    sink.otherwise({})
    const before = sink.requests().length
    await eventually(() => {
      const now = new Set(batches(sink.requests().slice(before)).flatMap(({ numbers }) => numbers))
      expect(now.size).to.equal(GROUPS)
    }, PATIENT)
    expect(batches().filter((batch) => batch.newer)).to.deep.equal([])
    await load()
    await attempted(GROUPS)
    expect(batches().some((batch) => batch.newer)).to.equal(true)
    expectOneKeyOneBody()
  })

  it('the older one leaves alone what the newer one sealed, for the next newer one', async () => {
    const older = await cluster.start('actor')
    const newer = await cluster.start('actor', NEWER)
    await untilItHas(newer, (shards) => shards > 0)
    await load()
    await attempted(0)
    const sealedNewer = new Map(batches().flatMap((batch) => (batch.newer ? [[batch.key, batch]] : [])))
    expect(sealedNewer.size).to.be.within(1, GROUPS - 1)

    await newer.stop('SIGKILL')
    const before = sink.requests().length
    sink.otherwise({})
    await untilItHas(older, (shards) => shards === 4)
    await eventually(() => older.service.events.some(({ what }) => what === WAITING), PATIENT)
    // Behind each of them, and of the others' groups.
    await load()
    const waiting = new Set([...sealedNewer.values()].map(({ group }) => group))
    const others = sent.filter(({ group }) => !waiting.has(group))
    await eventually(() => {
      const now = new Set(batches(sink.requests().slice(before)).flatMap(({ numbers }) => numbers))
      expect(others.filter(({ n }) => !now.has(n))).to.deep.equal([])
    }, PATIENT)
    expect(batches(sink.requests().slice(before)).filter(({ group }) => waiting.has(group))).to.deep.equal([])

    const next = await cluster.start('actor', NEWER)
    await untilItHas(next, (shards) => shards > 0)
    expect(await older.stop()).to.equal(0)
    await attempted(GROUPS)
    const delivered = new Map(batches(sink.requests().slice(before)).map((batch) => [batch.key, batch.body]))
    for (const { key, body } of sealedNewer.values()) expect(delivered.get(key), key).to.equal(body)
    expectOneKeyOneBody()
  })
})
