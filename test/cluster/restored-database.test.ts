/**
 * Postgres restored from a backup beside logs that are newer (fault matrix, row 21): what the journals say is over stays
 * over, what was accepted since the backup arrives, and counters catch up from the journals.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import postgres from 'postgres'
import type { Api } from '../support/api.ts'
import { Cluster, type ClusterNode } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { type Sink, startSink } from '../support/sink.ts'

const PATIENT_MS = 600_000

describe('a database that came back from a backup', function () {
  this.timeout(120_000)
  let cluster: Cluster
  let sink: Sink
  let nodes: ClusterNode[]
  let adminApi: Api
  let gate: Api
  let projectId: string

  before(async () => {
    sink = await startSink()
    cluster = await Cluster.create()
    await start()
    projectId = await adminApi.createProject()
    for (const bufferId of ['soon', 'held']) {
      await adminApi.createBuffer(projectId, bufferId, {
        batch: { maxItems: 3, idleTimeoutMs: PATIENT_MS, maxWaitFromFirstMs: PATIENT_MS },
        delivery: { url: sink.url(`/${bufferId}`) },
      })
    }
  })
  after(async () => {
    await cluster?.stop()
    await sink?.close()
  })

  async function start(env: Record<string, string> = {}): Promise<void> {
    nodes = await Promise.all(
      (['admin', 'ingress', 'actor'] as const).map((role) => cluster.start(role, env)),
    )
    adminApi = cluster.api(nodes[0]!)
    gate = cluster.api(nodes[1]!)
  }

  async function stop(): Promise<void> {
    for (const node of nodes.toReversed()) expect(await node.stop()).to.equal(0)
  }

  async function send(bufferId: string, numbers: readonly number[]): Promise<void> {
    for (const n of numbers) {
      const answer = await gate.ingest(projectId, bufferId, { group: 'a', n })
      expect(answer.status, answer.text).to.equal(202)
    }
  }

  const arrived = (bufferId: string) =>
    sink
      .requests(`/${bufferId}`)
      .flatMap((request) => (request.json() as { items: { payload: { n: number } }[] }).items)
      .map(({ payload }) => payload.n)

  const untilArrived = (bufferId: string, numbers: readonly number[]) =>
    eventually(() => expect(arrived(bufferId)).to.deep.equal(numbers), { timeoutMs: 30_000 })

  /** A copy of the database as it is; nobody is connected. */
  async function backUp(): Promise<string> {
    const url = new URL(cluster.databaseUrl)
    const name = url.pathname.slice(1)
    url.pathname = '/postgres'
    const sql = postgres(url.href, { max: 1 })
    await sql`CREATE DATABASE ${sql(`${name}_backup`)} TEMPLATE ${sql(name)}`
    await sql.end()
    url.pathname = `/${name}_backup`
    return url.href
  }

  it('loses nothing that was accepted since, sends nothing again, and counts each batch once', async () => {
    await send('soon', [1, 2, 3])
    await untilArrived('soon', [1, 2, 3])
    await stop()
    const backup = await backUp()
    await start()
    await send('soon', [4, 5, 6])
    await send('held', [1, 2])
    await untilArrived('soon', [1, 2, 3, 4, 5, 6])
    await stop()
    await start({ PENSTOCK_DATABASE_URL: backup })
    await send('held', [3])
    await untilArrived('held', [1, 2, 3])
    await send('soon', [7, 8, 9])
    await untilArrived('soon', [1, 2, 3, 4, 5, 6, 7, 8, 9])
    const keys = sink.requests().map(({ headers }) => headers['x-idempotency-key'])
    expect(new Set(keys).size).to.equal(keys.length)
    const path = '/v1/analytics/timeseries?customerId=cluster&days=2'
    await eventually(async () => {
      const { totals } = await adminApi.expect<{ totals: object }>(200, 'GET', path)
      expect(totals).to.include({ deliverySuccess: 4, itemsDelivered: 12, deliveryFail: 0 })
    })
  })
})
