/**
 * Configuration in nodes that are processes of their own, each with a network of its own to Postgres: a change at an
 * admin reaches an ingress and an actor, also when their connections were cut; and what they do with what they know
 * while Postgres is away (docs/architecture/outages.md).
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { connect } from '../../internal/postgres/connection.ts'
import { migrate } from '../../internal/postgres/migrate.ts'
import type { Answer, Api } from '../support/api.ts'
import { Cluster, type ClusterNode } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { ownPostgres } from '../support/servers.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

const PATIENT = { timeoutMs: 60_000, everyMs: 20 }
const HOUR_MS = 3_600_000
/** A batch an item, at once. */
const AT_ONCE = { maxItems: 1, idleTimeoutMs: 100, maxWaitFromFirstMs: 100 }

describe('configuration in a cluster', function () {
  this.timeout(120_000)
  let postgres: Awaited<ReturnType<typeof ownPostgres>>
  let cluster: Cluster
  let sink: Sink
  let proxies: TcpProxy[]
  let adminApi: Api
  let gate: Api
  let actor: ClusterNode
  let projectId: string
  let buffers = 0

  before(async () => {
    postgres = await ownPostgres()
    await migrate(postgres.url)
    cluster = await Cluster.create({ PENSTOCK_DATABASE_URL: postgres.url })
    sink = await startSink()
    const port = Number(new URL(cluster.databaseUrl).port)
    proxies = [await TcpProxy.to(port), await TcpProxy.to(port)]
    const [near, far] = proxies.map((proxy) => ({
      PENSTOCK_DATABASE_URL: proxy.through(cluster.databaseUrl),
    }))
    adminApi = cluster.api(await cluster.start('admin'))
    gate = cluster.api(await cluster.start('ingress', near))
    actor = await cluster.start('actor', far)
    projectId = await adminApi.createProject()
  })
  after(async () => {
    await cluster.stop()
    await Promise.all([...proxies.map((proxy) => proxy.close()), sink.close(), postgres.stop()])
  })

  /** Of the ingress and the actor. Neither is told: they find out. */
  function cutPostgres(): void {
    for (const proxy of proxies) proxy.blackhole()
  }

  /** The network is back, and none of the connections from before it. */
  function heal(): void {
    for (const proxy of proxies) {
      proxy.reset()
      proxy.heal()
    }
  }

  async function newBuffer(fields: object = {}): Promise<string> {
    const bufferId = `b${++buffers}`
    await adminApi.createBuffer(projectId, bufferId, {
      batch: AT_ONCE,
      delivery: { url: sink.url(`/${bufferId}`) },
      ...fields,
    })
    return bufferId
  }

  const send = (bufferId: string, n: number, headers: Record<string, string> = {}): Promise<Answer> =>
    gate.ingest(projectId, bufferId, { group: 'g', n }, headers)

  async function accept(bufferId: string, n: number): Promise<void> {
    const answer = await send(bufferId, n)
    expect(answer.status, answer.text).to.equal(202)
  }

  const arrived = (path: string): number[] =>
    sink
      .requests(path)
      .flatMap((request) => (request.json() as { items: { payload: { n: number } }[] }).items)
      .map(({ payload }) => payload.n)

  const known = async (bufferId: string, status: number): Promise<void> => {
    await eventually(async () => expect((await send(bufferId, -1)).status).to.equal(status), PATIENT)
  }

  it('a change at an admin is followed by another node’s ingress, in order', async () => {
    const bufferId = await newBuffer()
    await accept(bufferId, 0)
    for (const enabled of [false, true, false, true]) {
      await adminApi.patchBuffer(bufferId, { enabled })
      await known(bufferId, enabled ? 202 : 400)
      // What was seen once is not unseen.
      expect((await send(bufferId, -1)).status).to.equal(enabled ? 202 : 400)
    }
  })

  it('and by another node’s actor, in order', async () => {
    const bufferId = await newBuffer()
    let n = 0
    await accept(bufferId, n)
    const versions = [1, 2, 3, 4, 5].map((version) => `/${bufferId}/v${version}`)
    for (const path of versions) {
      await adminApi.patchBuffer(bufferId, { delivery: { url: sink.url(path) } })
      await eventually(async () => {
        await accept(bufferId, ++n)
        return sink.requests(path).length > 0
      }, PATIENT)
    }
    await eventually(() => {
      const all = sink.requests().filter(({ path }) => path.startsWith(`/${bufferId}`))
      expect(all.length).to.equal(n + 1)
      const order = all.map(({ path }) => versions.indexOf(path))
      expect(order).to.deep.equal(order.toSorted((a, b) => a - b))
    }, PATIENT)
  })

  it('a change made while their connections to Postgres are cut is seen once they are back', async () => {
    const closed = await newBuffer()
    const moved = await newBuffer()
    for (const bufferId of [closed, moved]) await accept(bufferId, 0)
    await eventually(() => expect(arrived(`/${moved}`)).to.deep.equal([0]), PATIENT)
    cutPostgres()
    await adminApi.patchBuffer(closed, { enabled: false })
    await adminApi.patchBuffer(moved, { delivery: { url: sink.url('/elsewhere') } })
    heal()
    await known(closed, 400)
    let n = 0
    await eventually(async () => {
      await send(moved, ++n)
      return arrived('/elsewhere').length > 0
    }, PATIENT)
  })

  it('nor is a deletion missed that nobody can tell any more', async () => {
    const [removed, other] = [await newBuffer(), await newBuffer()]
    for (const bufferId of [removed, other]) await accept(bufferId, 0)
    await eventually(() => expect(arrived(`/${removed}`)).to.deep.equal([0]), PATIENT)
    cutPostgres()
    await adminApi.deleteBuffer(removed)
    await forget(removed)
    await adminApi.patchBuffer(other, { name: 'a later change' })
    heal()
    await known(removed, 404)
    await adminApi.createBuffer(projectId, removed, {
      batch: AT_ONCE,
      delivery: { url: sink.url(`/anew-${removed}`) },
    })
    await accept(removed, 1)
    await eventually(() => expect(arrived(`/anew-${removed}`)).to.deep.equal([1]), PATIENT)
    expect(arrived(`/${removed}`)).not.to.include(1)
  })

  /** What the owner of shard 0 does ten minutes after a deletion: the row goes, and its entry in the change feed. */
  async function forget(bufferId: string): Promise<void> {
    const db = connect(cluster.databaseUrl, { max: 1 })
    const [row] = await db`DELETE FROM buffers WHERE buffer_id = ${bufferId} RETURNING uid::text`
    await db`DELETE FROM config_changes WHERE id = ${row!.uid}`
    await db.end()
  }

  describe('while Postgres is away', () => {
    let open: string
    let disabled: string
    let patient: string
    let rejected: string
    let key: string
    /** Until then no batch is rejected, or its dead letter could be stored before. */
    const away = Promise.withResolvers<void>()
    /** From then on its owner has read its configuration, which it could not once Postgres is away. */
    const asked = Promise.withResolvers<void>()

    before(async () => {
      open = await newBuffer()
      disabled = await newBuffer()
      patient = await newBuffer({ batch: { idleTimeoutMs: 3_000, maxWaitFromFirstMs: HOUR_MS } })
      rejected = await newBuffer({
        batch: { idleTimeoutMs: HOUR_MS, maxWaitFromFirstMs: HOUR_MS, maxItems: 2 },
      })
      key = (await adminApi.createKey()).secret
      for (const bufferId of [open, disabled, patient]) await accept(bufferId, 0)
      await eventually(() => expect(arrived(`/${open}`)).to.deep.equal([0]), PATIENT)
      await adminApi.patchBuffer(disabled, { enabled: false })
      await known(disabled, 400)
      // Known by its key too: the first request with it asks Postgres.
      expect((await send(disabled, 0, { 'x-api-key': key })).status).to.equal(400)
      sink.on(`/${rejected}`, async () => {
        asked.resolve()
        await away.promise
        return { status: 404 }
      })
    })

    function isUnavailable({ status, headers, text }: Answer): void {
      expect(status, text).to.equal(503)
      expect(headers.get('retry-after')).to.equal('1')
    }

    it('refuses what needs Postgres with 503, what memory refuses as always, and delivers what is buffered', async () => {
      await accept(rejected, 0)
      await accept(rejected, 1)
      await asked.promise
      await postgres.stop()
      away.resolve()
      // What is stored, known or not, cannot be charged; what is not known may exist.
      isUnavailable(await send(open, 1))
      isUnavailable(await send('unknown', 1))
      isUnavailable(await send(open, 1, { 'x-api-key': key }))
      isUnavailable(await send(disabled, 1, { 'x-api-key': `svk_${'a'.repeat(48)}` }))
      // By the configuration last seen.
      for (const secret of [undefined, key]) {
        const answer = await send(disabled, 1, secret === undefined ? {} : { 'x-api-key': secret })
        expect([answer.status, answer.json().error]).to.deep.equal([400, 'Buffer is disabled'])
      }
      expect((await gate.ingest('another', open, { group: 'g' })).status).to.equal(400)
      expect((await send(disabled, 1, { 'x-api-key': 'short' })).status).to.equal(401)

      await eventually(() => expect(arrived(`/${patient}`)).to.deep.equal([0]), PATIENT)
      // The rejected batch waits for its dead letter, which the counters of deliveries before it go ahead of.
      await eventually(() => {
        const told = actor.service.events.map(({ what }) => what)
        expect(told).to.include.oneOf(['a dead letter cannot be stored', 'delivery counters'])
      }, PATIENT)
    })

    it('and all goes on afterwards: the dead letter is there once, nothing was sent twice, nothing refused was stored', async () => {
      await postgres.restart()
      await eventually(async () => {
        const [letter, ...more] = await adminApi.deadLetters(rejected)
        expect(more).to.deep.equal([])
        expect(letter).to.include({ itemCount: 2, lastStatusCode: 404 })
      }, PATIENT)
      expect(arrived(`/${rejected}`)).to.deep.equal([0, 1])
      await eventually(async () => expect((await send(open, 2)).status).to.equal(202), PATIENT)
      await eventually(() => expect(arrived(`/${open}`).at(-1)).to.equal(2), PATIENT)
      expect(arrived(`/${open}`)).to.not.include(1)
      expect((await send('unknown', 1)).status).to.equal(404)
      expect((await send(disabled, 1, { 'x-api-key': `svk_${'a'.repeat(48)}` })).status).to.equal(401)
    })
  })
})
