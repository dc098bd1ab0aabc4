/**
 * Backup and restore as docs/operations/backup.md has them: the data folder copied while nothing runs, and a part that
 * came back alone.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { Api } from '../support/api.ts'
import { runCommand } from '../support/command.ts'
import { eventually } from '../support/eventually.ts'
import { natsBinary } from '../support/servers.ts'
import { type Service, startService, untilHealthy } from '../support/service.ts'
import { shardsWhereTheyRun } from '../support/service-nodes.ts'
import { type Sink, startSink } from '../support/sink.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { batchOf, NEVER_DUE, payloadsOf } from './harness.ts'

const SHARDS = 2

describe('backup and restore of the local instance', function () {
  this.timeout(180_000)
  const dataDir = join(tempFolder('installation'), 'data')
  const backup = join(tempFolder('backup'), 'data')
  const key = `svk_${randomBytes(24).toString('hex')}`
  let env: Record<string, string>
  let sink: Sink
  let service: Service
  let api: Api
  let projectId: string

  before(async () => {
    env = {
      PENSTOCK_OWNER_KEYS: `e2e=${key}`,
      PENSTOCK_LOG_LEVEL: 'debug',
      PENSTOCK_SHARDS: `${SHARDS}`,
      NATS_SERVER_BIN: await natsBinary(),
    }
    sink = await startSink()
    await start(dataDir)
    await untilHealthy(service)
    api = new Api(() => service.url, key, 'e2e')
    projectId = await api.createProject()
    await api.createBuffer(projectId, 'orders', { batch: NEVER_DUE, delivery: { url: sink.url('/orders') } })
  })

  after(async () => {
    await stop()
    await sink.close()
  })

  async function start(folder: string): Promise<void> {
    service = await startService({ dataDir: folder, env })
  }

  async function stop(): Promise<void> {
    if (service.child.exitCode !== null) return
    service.child.kill('SIGTERM')
    expect(await service.exited(), service.output()).to.equal(0)
  }

  const copy = (from: string, to: string) => promisify(execFile)('cp', ['-a', from, to])
  const send = async (...numbers: number[]) => {
    for (const n of numbers) {
      // One group each: they spread over both shards.
      const answer = await api.ingest(projectId, 'orders', { group: `g${n}`, n, messageId: `m${n}` })
      expect(answer.status, answer.text).to.equal(202)
    }
  }
  const arrived = (): number[] =>
    payloadsOf(sink.requests('/orders').map(batchOf))
      .map(({ n }) => n as number)
      .sort((a, b) => a - b)
  const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)
  const flush = () => api.patchBuffer('orders', { batch: { maxItems: 1 } })

  it('a copy of the data folder holds every 202: started on it, the service delivers what was buffered', async () => {
    await send(...numbers(0, 20))
    await stop()
    await copy(dataDir, backup)
    // The original is gone: what follows stands on the copy alone.
    rmSync(dataDir, { recursive: true })
    await copy(backup, dataDir)
    await start(dataDir)
    await untilHealthy(service)
    // Also what was known of them: a repeat is still a duplicate.
    expect((await api.ingest(projectId, 'orders', { group: 'g3', n: 3, messageId: 'm3' })).json()).to.include(
      {
        duplicate: true,
      },
    )
    await flush()
    await eventually(() => expect(arrived()).to.deep.equal(numbers(0, 20)), { timeoutMs: 20_000 })
  })

  it('NATS of an older backup beside a newer Postgres stops every shard instead of going on', async () => {
    await send(...numbers(20, 40))
    await eventually(() => expect(arrived()).to.deep.equal(numbers(0, 40)), { timeoutMs: 20_000 })
    await stop()
    rmSync(join(dataDir, 'nats', 'store'), { recursive: true })
    await copy(join(backup, 'nats', 'store'), join(dataDir, 'nats', 'store'))
    await start(dataDir)
    const rows = await eventually(
      async () => {
        const shards = await shardsWhereTheyRun(service)
        return shards.length === SHARDS && shards.every(({ state }) => state === 'lost') && shards
      },
      { timeoutMs: 120_000 },
    )
    for (const { trouble } of rows) expect(trouble).to.match(/the journal lost messages.*runbooks\.md$/)
    expect((await fetch(`${service.url}/health`)).status).to.equal(503)
    // Ingress goes on: these must not be lost by the repair.
    await send(40, 41)
  })

  it('the repair finds the embedded servers, refuses beside the running service, and brings the shards back', async () => {
    const repair = (...args: string[]) =>
      runCommand('cmd/repair/main.ts', args, { ...env, PENSTOCK_DATA_DIR: dataDir })
    const beside = await repair('--shard', '0', '--yes')
    expect(beside.code).to.equal(1)
    expect(beside.stderr).to.match(/^the data folder \S+ is in use by process \d+ on \S+\n$/)
    await stop()
    for (const shard of numbers(0, SHARDS)) {
      expect((await repair('--shard', `${shard}`)).code).to.equal(3)
      const { code, stdout, stderr } = await repair('--shard', `${shard}`, '--yes')
      expect(code, stderr).to.equal(0)
      expect(stdout).to.match(/Repaired: a node may run it\.\n$/)
    }
    const again = await repair('--all')
    expect(again).to.deep.equal({
      code: 0,
      stdout: 'Shard 0: nothing to repair.\nShard 1: nothing to repair.\n',
      stderr: '',
    })
    const renewed = await repair('--all', '--renew', '--yes')
    expect(renewed.code, renewed.stderr).to.equal(0)
    expect(renewed.stdout.match(/Written anew with all that it holds/g)).to.have.length(SHARDS)
    const before = sink.requests('/orders').length
    await start(dataDir)
    await untilHealthy(service)
    await eventually(() => expect(arrived()).to.include.members([40, 41]), { timeoutMs: 20_000 })
    // What the backup held as buffered is delivered once more, under other keys: nobody knows there that it was.
    await eventually(() => expect(arrived().filter((n) => n < 20)).to.have.length(40), { timeoutMs: 20_000 })
    const keys = sink
      .requests('/orders')
      .map(({ headers, body }) => [headers['x-idempotency-key'], `${body}`])
    expect(new Set(keys.map(([name]) => name)).size).to.equal(new Set(keys.map(String)).size)
    expect(sink.requests('/orders').length).to.be.above(before)
  })

  it('npm run shards finds the broker of the data folder', async () => {
    const { code, stdout, stderr } = await runCommand('cmd/shards/main.ts', [service.opsUrl], {
      PENSTOCK_DATA_DIR: dataDir,
    })
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' })
    expect(stdout.match(/ owned /g)).to.have.length(SHARDS)
    expect(stdout.match(/ running /g)).to.have.length(SHARDS)
  })
})
