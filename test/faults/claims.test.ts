/**
 * Who owns a shard, when things happen that no node did (fault matrix, rows 18, 22 and 23): actors as processes of their
 * own, over one broker into which the test reaches by hand. The epochs in the journals tell who claimed what.
 */

import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { groupToken, shardOf } from '../../internal/domain/group.ts'
import { connect } from '../../internal/postgres/connection.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { appendEpoch } from '../../internal/shard/claim/takeover.ts'
import { decodeCommit } from '../../internal/shard/journal/codec.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import type { Api } from '../support/api.ts'
import { Cluster, type ClusterNode } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { type Sink, startSink } from '../support/sink.ts'

const SHARDS = [0, 1, 2, 3]
/** So many that every shard has some. */
const GROUPS = Array.from({ length: 64 }, (_, index) => `g${index}`)

interface Claim {
  readonly epoch: number
  readonly boot: string
}

describe('shards in the hands of several actors', function () {
  this.timeout(120_000)
  let cluster: Cluster
  let adminApi: Api
  let gate: ClusterNode
  let actors: ClusterNode[]
  let sink: Sink
  let logs: TestBroker
  let projectId: string
  let bufferId: string
  let sent: number
  /** Shards that read nothing any more. */
  const poisoned = new Set<number>()

  before(async () => {
    sink = await startSink()
    cluster = await Cluster.create()
    const admin = await cluster.start('admin')
    gate = await cluster.start('ingress')
    actors = await Promise.all([cluster.start('actor'), cluster.start('actor')])
    adminApi = cluster.api(admin)
    projectId = await adminApi.createProject()
    logs = await brokerAt(cluster.natsUrl, SHARDS.length)
    await settled()
  })
  after(async () => {
    await logs?.close()
    await cluster?.stop()
    await sink?.close()
  })

  beforeEach(async () => {
    bufferId = `buffer-${randomUUID()}`
    sent = 0
    await adminApi.createBuffer(projectId, bufferId, {
      batch: { maxItems: 1, idleTimeoutMs: 100, maxWaitFromFirstMs: 100 },
      delivery: { url: sink.url(`/${bufferId}`) },
    })
  })

  /** Each actor runs two shards, and says so. */
  const settled = () =>
    eventually(async () => expect(await shares()).to.deep.equal([2, 2]), { timeoutMs: 40_000 })

  const shares = () =>
    Promise.all(
      actors.map(async ({ opsUrl }) => {
        const text = await (await fetch(`${opsUrl}/metrics`)).text()
        return text.split('\n').filter((line) => /^penstock_shard_epoch\{.* [1-9]/.test(line)).length
      }),
    )

  /** All claims of a shard's journal, the oldest first. */
  async function claimsOf(shard: number): Promise<Claim[]> {
    const journal = logs.broker.journal(shard)
    const { firstSeq, lastSeq } = await journal.state()
    const claims: Claim[] = []
    for await (const { seq, data } of journal.range(firstSeq, lastSeq)) {
      const { boot, records } = decodeCommit(data)
      if (records.some(({ type }) => type === 'epoch')) claims.push({ epoch: seq, boot })
    }
    return claims
  }

  const ownersOf = () => Promise.all(SHARDS.map(async (shard) => (await claimsOf(shard)).at(-1)!))

  /** One item of every group, which together reach every shard. */
  async function load(groups = GROUPS): Promise<void> {
    for (const group of groups) {
      const answer = await cluster.api(gate).ingest(projectId, bufferId, { group, n: sent++ })
      expect(answer.status, answer.text).to.equal(202)
    }
  }

  function arrived(): number[] {
    return sink
      .requests(`/${bufferId}`)
      .flatMap((request) => (request.json() as { items: { payload: { n: number } }[] }).items)
      .map(({ payload }) => payload.n)
  }

  const allArrived = () =>
    eventually(() => expect(new Set(arrived()).size).to.equal(sent), { timeoutMs: 40_000 })

  const said = (shard: number, what: string) =>
    actors
      .flatMap(({ service }) => service.events)
      .filter((event) => event.shard === shard && event.level === 'error')
      .filter((event) => event.what === what).length

  async function uidOf(id: string): Promise<string> {
    const db = connect(cluster.databaseUrl, { max: 1 })
    const [row] = await db<{ uid: string }[]>`SELECT uid FROM buffers WHERE buffer_id = ${id}`
    await db.end()
    return row!.uid
  }

  it('go on when the consumers that read them are deleted by hand', async () => {
    await load()
    await allArrived()
    const manager = await logs.connection.nats.jetstreamManager()
    let deleted = 0
    for (const shard of SHARDS) {
      for await (const { name } of manager.consumers.list(`INBOX_${shard}`)) {
        if (await manager.consumers.delete(`INBOX_${shard}`, name)) deleted++
      }
    }
    expect(deleted, 'they were there').to.be.at.least(SHARDS.length)
    const owners = await ownersOf()
    await load()
    await allArrived()
    expect(arrived(), 'each once').to.have.length(sent)
    expect(await ownersOf(), 'nobody claimed anything').to.deep.equal(owners)
  })

  it('stay where they are when the bucket of the leases is deleted, and when it is made again empty', async () => {
    const owners = await ownersOf()
    const manager = await logs.connection.nats.jetstreamManager()
    await manager.streams.delete('KV_penstock-leases')
    await eventually(async () => {
      const { state } = await manager.streams.info('KV_penstock-leases')
      expect(state.messages).to.be.at.least(actors.length + 2)
    })
    await manager.streams.purge('KV_penstock-leases')
    // Long enough for somebody to be taken for gone: a node that joins is seen by all, and takes its part.
    actors.push(await cluster.start('actor'))
    await eventually(async () => expect((await shares()).sort()).to.deep.equal([1, 1, 2]), {
      timeoutMs: 40_000,
    })
    const moved = (await ownersOf()).filter(({ epoch }, shard) => epoch !== owners[shard]!.epoch)
    expect(moved, 'only what the joiner took').to.have.length(1)
    await load()
    await allArrived()
    expect(arrived(), 'each once').to.have.length(sent)
    expect(await actors.pop()!.stop()).to.equal(0)
    await settled()
  })

  it('one whose epoch record arrives late runs again where it belongs, and loses nothing', async () => {
    const owners = await ownersOf()
    const { boot } = owners[0]!
    const other = owners.find((each) => each.boot !== boot)!.boot
    const late = await appendEpoch(logs.broker.journal(0), {
      boot: other,
      claim: 1_000_000,
      clock: systemClock(),
      stopped: () => false,
    })
    await load()
    await allArrived()
    await eventually(async () => {
      const claims = await claimsOf(0)
      const after = claims.slice(claims.findIndex(({ epoch }) => epoch === late) + 1)
      expect(after.at(-1)?.boot, 'who ran it before has it again').to.equal(boot)
    })
    await settled()
  })

  const POISON = {
    'a message of its inbox': {
      shard: 1,
      log: () => logs.broker.inbox(1),
      subject: 'items.1.mixed',
    },
    'a commit of its journal': {
      shard: 2,
      log: () => logs.broker.journal(2),
      subject: undefined,
    },
  }
  for (const [what, { shard, log, subject }] of Object.entries(POISON)) {
    it(`one that cannot read ${what} stops alone and says so, all others go on`, async () => {
      const options = { msgId: `poison-${shard}`, timeoutMs: 5_000 }
      const answer = await log().append(Buffer.from('poison'), { ...options, ...(subject && { subject }) })
      expect(answer.kind).to.equal('stored')
      poisoned.add(shard)
      await load()
      // Again and again, with a back-off, for as long as the poison is there.
      await eventually(() => expect(said(shard, 'the shard is quarantined')).to.be.above(1), {
        timeoutMs: 40_000,
      })
      const uid = await uidOf(bufferId)
      const healthy = GROUPS.flatMap((group, n) =>
        poisoned.has(shardOf(groupToken(uid, group), SHARDS.length)) ? [] : [n],
      )
      expect(healthy).to.have.length.within(1, GROUPS.length - 1)
      await eventually(() => expect(arrived()).to.have.members(healthy), { timeoutMs: 30_000 })
      for (const { service } of actors) expect(service.child.exitCode).to.equal(null)
    })
  }
})
