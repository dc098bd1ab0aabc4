/** `npm start` with PENSTOCK_PROCESSES: further nodes as its children, over the same servers. */
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { findProcesses, isRunning } from '../../internal/embedded/process-identity.ts'
import type { ShardTable } from '../../internal/shard/status/shard-table.ts'
import { eventually } from '../support/eventually.ts'
import { createInstallation, type Installation } from '../support/service.ts'
import { type Sink, startSink } from '../support/sink.ts'

describe('npm start with three processes', function () {
  this.timeout(120_000)
  let installation: Installation
  let sink: Sink
  let projectId: string
  let sent = 0

  before(async () => {
    sink = await startSink()
    installation = await createInstallation({ env: { PENSTOCK_SHARDS: '2', PENSTOCK_PROCESSES: '3' } })
    await installation.start()
    projectId = await installation.api().createProject()
    await installation.api().createBuffer(projectId, 'orders', {
      batch: { maxItems: 5, idleTimeoutMs: 200, maxWaitFromFirstMs: 1_000 },
      delivery: { url: sink.url('/orders') },
    })
  })
  after(async () => {
    await installation?.stop()
    await sink?.close()
  })

  const children = () => findProcesses(`--env-file=${join(installation.dataDir, 'nodes', '/')}`)

  async function shardsAt(opsUrl: unknown): Promise<number> {
    const text = await (await fetch(`${opsUrl}/metrics`)).text()
    return [...text.matchAll(/^penstock_shard_epoch\{.*\} [1-9]/gm)].length
  }

  /** And the first, which takes the requests, none. */
  const untilEachHasOne = () =>
    eventually(
      async () => {
        const actors = new Map(
          installation.events('process started').map(({ node, opsUrl }) => [node, opsUrl]),
        )
        const all = await Promise.all([installation.service.opsUrl, ...actors.values()].map(shardsAt))
        expect(all).to.deep.equal([0, 1, 1])
      },
      { timeoutMs: 30_000 },
    )

  async function deliver(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const payload = { group: `k${sent % 12}`, n: sent++ }
      const { status } = await installation.api().ingest(projectId, 'orders', payload)
      expect(status).to.equal(202)
    }
    await eventually(() => expect(delivered()).to.have.length(sent), { timeoutMs: 30_000 })
  }

  function delivered(): number[] {
    const bodies = sink.requests('/orders').map((request) => request.json())
    const items = bodies.flatMap((body) => (body as { items: { payload: { n: number } }[] }).items)
    return [...new Set(items.map(({ payload }) => payload.n))]
  }

  it('leaves the shards to them, each its share, and delivers what belongs to either', async () => {
    expect(children()).to.have.length(2)
    await untilEachHasOne()
    await deliver(24)
  })

  it('shows all shards on the ops port of the first, each as the process tells that runs it', async () => {
    await eventually(async () => {
      const answer = await fetch(new URL('/shards', installation.service.opsUrl))
      const { held, shards } = (await answer.json()) as ShardTable
      const shown = shards.map(({ here, state, lag, owners }) => ({
        here,
        state,
        lag,
        owners: owners.length,
      }))
      const one = { here: true, state: 'running', lag: 0, owners: 1 }
      expect({ held, shown }).to.deep.equal({ held: true, shown: [one, one] })
      expect(new Set(shards.map(({ owners }) => owners[0]?.boot)).size).to.equal(2)
    })
  })

  it('tells by /health when a process among them does not answer, and when it does again', async () => {
    const health = async () => {
      const answer = await fetch(`${installation.service.url}/health`)
      const { checks } = (await answer.json()) as { checks: Record<string, string> }
      return { status: answer.status, shards: checks.shards }
    }
    const [child] = children()
    await eventually(async () => expect(await health()).to.deep.equal({ status: 200, shards: 'ok' }))
    process.kill(child!, 'SIGSTOP')
    try {
      await eventually(async () => expect(await health()).to.deep.equal({ status: 503, shards: 'down' }))
    } finally {
      process.kill(child!, 'SIGCONT')
    }
    await eventually(async () => expect(await health()).to.deep.equal({ status: 200, shards: 'ok' }), {
      timeoutMs: 30_000,
    })
    await untilEachHasOne()
    await deliver(12)
  })

  it('starts one again that is killed, and loses nothing', async () => {
    const [killed] = children()
    process.kill(killed!, 'SIGKILL')
    await deliver(24)
    await eventually(() => expect(children().filter((pid) => pid !== killed)).to.have.length(2))
    await untilEachHasOne()
  })

  it('finds what a kill of itself left behind at the next start, also with one process', async () => {
    const left = children()
    installation.service.child.kill('SIGKILL')
    await installation.service.exited()
    expect(left.filter(isRunning)).to.deep.equal(left)
    await installation.start({ PENSTOCK_PROCESSES: '1' })
    expect(left.filter(isRunning)).to.deep.equal([])
    expect(children()).to.deep.equal([])
    await deliver(12)
    expect(await installation.stop()).to.equal(0)
  })

  it('ends all of them on SIGTERM with 0', async () => {
    await installation.start()
    await deliver(12)
    const all = children()
    expect(all).to.have.length(2)
    expect(await installation.stop()).to.equal(0)
    expect(all.filter(isRunning)).to.deep.equal([])
  })
})
