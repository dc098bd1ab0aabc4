/** The way to another shard count, as the runbook has it: drain, remove the logs, start. */
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { Api } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { type Service, startService, untilHealthy } from '../support/service.ts'
import { shardsWhereTheyRun } from '../support/service-nodes.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { batchOf, payloadsOf } from './harness.ts'

describe('another shard count', function () {
  this.timeout(180_000)
  const dataDir = join(tempFolder('installation'), 'data')
  const key = `svk_${randomBytes(24).toString('hex')}`
  let sink: Sink
  let service: Service
  let api: Api
  let projectId: string

  const start = async (shards: number) => {
    const env = {
      PENSTOCK_OWNER_KEYS: `e2e=${key}`,
      PENSTOCK_SHARDS: `${shards}`,
      PENSTOCK_LOG_LEVEL: 'debug',
    }
    service = await startService({ dataDir, env })
  }
  const stop = async () => {
    service.child.kill('SIGTERM')
    return service.exited()
  }
  const send = async (n: number) => {
    const answer = await api.ingest(projectId, 'orders', { group: `g${n}`, n })
    expect(answer.status, answer.text).to.equal(202)
  }
  const untilDrained = () =>
    eventually(async () => {
      const shards = await shardsWhereTheyRun(service)
      return (
        shards.length === 2 &&
        shards.every(({ items, lag, outstanding }) => items === 0 && lag === 0 && outstanding?.count === 0)
      )
    })

  before(async () => {
    sink = await startSink()
    await start(2)
    await untilHealthy(service)
    api = new Api(() => service.url, key, 'e2e')
    projectId = await api.createProject()
    const batch = { idleTimeoutMs: 100, maxWaitFromFirstMs: 1_000 }
    await api.createBuffer(projectId, 'orders', { batch, delivery: { url: sink.url('/orders') } })
  })

  after(async () => {
    if (service.child.exitCode === null) await stop()
    await sink.close()
  })

  it('is refused while the logs of the former one are there, drained or not', async () => {
    for (let n = 0; n < 10; n++) await send(n)
    await untilDrained()
    expect(await stop()).to.equal(0)
    await start(3)
    expect(await service.exited()).to.equal(1)
    expect(service.output()).to.match(/the logs were made for 2 shards and INBOX_\d is not empty/)
  })

  it('works once the drained logs are removed: all shards run, and nothing comes twice', async () => {
    rmSync(join(dataDir, 'nats', 'store'), { recursive: true })
    await start(3)
    await untilHealthy(service)
    for (let n = 10; n < 30; n++) await send(n)
    await eventually(() =>
      expect(
        payloadsOf(sink.requests('/orders').map(batchOf))
          .map(({ n }) => n as number)
          .sort((a, b) => a - b),
      ).to.deep.equal(Array.from({ length: 30 }, (_, n) => n)),
    )
    // A process that waits for its broker answers 503, and one that was just started may not have read the leases.
    await eventually(async () => {
      const shards = await shardsWhereTheyRun(service)
      expect(shards.map(({ state }) => state)).to.deep.equal(['running', 'running', 'running'])
    })
    const keys = sink.requests('/orders').map(({ headers }) => headers['x-idempotency-key'])
    expect(new Set(keys).size).to.equal(keys.length)
  })
})
