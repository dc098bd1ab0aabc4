/**
 * Backup and restore of a cluster (three brokers, Postgres) with the commands of docs/operations/backup.md as they
 * stand there: made while senders go on, restored after everything is gone.
 */
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'

import type { NatsCluster } from '../../../internal/embedded/nats-cluster.ts'
import type { Accepted, Api } from '../../support/api.ts'
import { Cluster, type ClusterNode } from '../../support/cluster.ts'
import { eventually } from '../../support/eventually.ts'
import { ownNatsCluster } from '../../support/servers.ts'
import { shell, shellBlocks } from '../../support/shell-commands.ts'
import { type Sink, startSink } from '../../support/sink.ts'
import { tempFolder } from '../../support/temp-folders.ts'
import { type InstalledPostgres, installedPostgres } from './postgres.ts'
import { type BackupTools, backupToolsOrSkip } from './tools.ts'

const SHARDS = 2
const NEVER = { maxItems: 1000, idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 }
const SOON = { maxItems: 3, idleTimeoutMs: 100, maxWaitFromFirstMs: 600_000 }

describe('backup and restore of a cluster', function () {
  this.timeout(240_000)
  const natsDir = join(tempFolder('backup-nats'), 'nats')
  const backup = join(tempFolder('backup'), 'backup')
  const [BACK_UP = '', RESTORE = ''] = shellBlocks('docs/operations/backup.md', '## A cluster')
  let tools: BackupTools
  let brokers: NatsCluster
  let database: InstalledPostgres
  let cluster: Cluster
  let sink: Sink
  let fronts: ClusterNode[] = []
  let actors: ClusterNode[] = []
  let projectId: string
  /** What was in the destination when the restored cluster had not started yet. */
  let reopened: number

  before(async function () {
    tools = await backupToolsOrSkip(this)
    ;[brokers, database, sink] = await Promise.all([
      ownNatsCluster({ dir: natsDir }),
      installedPostgres(tools.postgres),
      startSink(),
    ])
    await database.renew()
    cluster = await Cluster.create({
      PENSTOCK_NATS_URL: brokers.urls.join(','),
      PENSTOCK_DATABASE_URL: database.url,
      PENSTOCK_SHARDS: `${SHARDS}`,
      PENSTOCK_REPLICAS: '3',
    })
    expect(await (await cluster.spawn('migrate')).exited()).to.equal(0)
    await startFronts()
    await startActors()
    projectId = await api().createProject()
    for (const [bufferId, batch] of [
      ['soon', SOON],
      ['held', NEVER],
      ['failing', SOON],
      ['during', NEVER],
    ] as const) {
      await api().createBuffer(projectId, bufferId, {
        batch,
        throughput: { maxAttempts: 1 },
        delivery: { url: sink.url(`/${bufferId}`) },
      })
    }
    sink.on('/failing', { status: 400 })
  })
  after(async () => {
    await cluster?.stop()
    await sink?.close()
    await brokers?.stop()
    await database?.stop()
  })

  const startFronts = async () => {
    fronts = [await cluster.start('admin'), await cluster.start('ingress')]
  }
  const startActors = async () => {
    actors = await Promise.all([cluster.start('actor'), cluster.start('actor')])
  }
  const stop = async (nodes: ClusterNode[]) => {
    for (const code of await Promise.all(nodes.map((node) => node.stop()))) expect(code).to.equal(0)
  }
  const api = (): Api => cluster.api(fronts[0]!)
  const send = async (bufferId: string, numbers: readonly number[]): Promise<Accepted[]> => {
    const answers = []
    for (const n of numbers) {
      const payload = { group: `g${n % 4}`, n, messageId: `${bufferId}-${n}` }
      const answer = await cluster.api(fronts[1]!).ingest(projectId, bufferId, payload)
      expect(answer.status, answer.text).to.equal(202)
      answers.push(answer.json() as Accepted)
    }
    return answers
  }
  const arrived = (bufferId: string, since = 0) =>
    sink
      .requests(`/${bufferId}`)
      .filter(({ order }) => order >= since)
      .flatMap((request) => (request.json() as { items: { payload: { n: number } }[] }).items)
      .map(({ payload }) => payload.n)
      .sort((a, b) => a - b)
  const untilArrived = (bufferId: string, numbers: readonly number[], since = 0) =>
    eventually(() => expect(arrived(bufferId, since)).to.deep.equal(numbers), { timeoutMs: 30_000 })
  const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)
  const run = async (commands: string) => {
    const { code, output } = await shell(
      `on() { node "$@"; }
       repair() { on cmd/repair/main.ts "$@"; }
       export NATS_URL=$(on -p process.env.PENSTOCK_NATS_URL)
       ${commands}`,
      { ...cluster.environment, PATH: `${tools.nats}:${tools.postgres}:${process.env.PATH}`, B: backup },
    )
    // Its end: the reason of a failure, behind hundreds of lines about the streams.
    expect(code, output.slice(-2000)).to.equal(0)
    return output
  }

  /** As the page says: a restore in which a command fails is begun again, with empty servers. */
  const restored = async () => {
    for (let attempt = 1; ; attempt++) {
      await brokers.stop()
      for (const { name } of brokers.members) rmSync(join(natsDir, name, 'store'), { recursive: true })
      brokers = await ownNatsCluster({ dir: natsDir })
      await database.renew()
      try {
        return await run(RESTORE)
      } catch (error) {
        if (attempt === 3) throw error
        process.stderr.write(`*** restore ${attempt} failed: ${(error as Error).message}\n`)
      }
    }
  }

  it('is made with the actors stopped, while senders go on', async () => {
    await send('soon', numbers(0, 10))
    await send('held', numbers(0, 10))
    await send('failing', [1])
    await untilArrived('soon', numbers(0, 10))
    await eventually(async () => expect(await api().deadLetters('failing')).to.have.length(1))
    await stop(actors)
    await send('soon', numbers(10, 15))
    await send('held', numbers(10, 15))
    // Not all of these are in it; that they disturb nothing is what counts.
    let sending = true
    const during = (async () => {
      for (let n = 1000; sending; n++) await send('during', [n])
    })()
    await run(BACK_UP).finally(() => {
      sending = false
    })
    await during
    expect(readdirSync(backup)).to.have.members([
      'postgres',
      ...numbers(0, SHARDS).flatMap((shard) => [`INBOX_${shard}`, `JOURNAL_${shard}`, `ARCHIVE_${shard}`]),
    ])
    await startActors()
    await untilArrived('soon', numbers(0, 15))
  })

  it('is restored into empty servers, after keys were used that it does not know', async () => {
    await send('soon', numbers(15, 20))
    await untilArrived('soon', numbers(0, 20))
    await stop([...actors, ...fronts])
    const output = await restored()
    expect(output.match(/Written anew with all that it holds/g), output).to.have.length(SHARDS)
    reopened = sink.requests().length
  })

  it('delivers every 202 of before it', async () => {
    await startFronts()
    await startActors()
    // Sealed or not when the backup was made, and delivered since: it cannot know, and sends them again.
    await untilArrived('soon', numbers(10, 15), reopened)
    // Also what was known of them: a duplicate of one that is buffered is still one.
    await eventually(async () => {
      const [duplicate] = await send('held', [3])
      expect(duplicate).to.include({ duplicate: true })
    })
    await api().patchBuffer('held', { batch: { maxItems: 1 } })
    await untilArrived('held', numbers(0, 15))
  })

  it('has the dead letter, under the key that it was sent with', async () => {
    const [first] = sink.requests('/failing')
    const [dead] = await api().deadLetters('failing')
    sink.on('/failing', { status: 200 })
    await api().expect(200, 'POST', `/v1/dlq/${dead!.dlqId}/retry`)
    const retried = sink.requests('/failing').at(-1)!
    expect(retried.headers['x-idempotency-key']).to.equal(first!.headers['x-idempotency-key'])
    expect(`${retried.body}`).to.equal(`${first!.body}`)
  })

  it('goes on, and no key has had two bodies', async () => {
    await send('soon', numbers(20, 30))
    await untilArrived('soon', [...numbers(10, 15), ...numbers(20, 30)], reopened)
    const bodies = new Map<unknown, string>()
    for (const { headers, body } of sink.requests()) {
      const key = headers['x-idempotency-key']
      expect(key).to.be.a('string')
      expect(`${body}`).to.equal(bodies.get(key) ?? `${body}`)
      bodies.set(key, `${body}`)
    }
  })
})
