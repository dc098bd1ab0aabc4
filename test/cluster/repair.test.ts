/** `npm run repair` beside a cluster whose broker lost messages. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { createBroker, type NatsBroker } from '../../internal/nats/broker.ts'
import type { Connection } from '../../internal/nats/connection.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { ShardTable } from '../../internal/shard/status/shard-table.ts'
import { connectTo } from '../nats/support.ts'
import { loseAbove } from '../shard/repair/loss.ts'
import type { Api } from '../support/api.ts'
import { Cluster, type ClusterNode } from '../support/cluster.ts'
import { runCommand } from '../support/command.ts'
import { eventually } from '../support/eventually.ts'
import { type Sink, startSink } from '../support/sink.ts'

describe('npm run repair', function () {
  this.timeout(180_000)
  let cluster: Cluster
  let sink: Sink
  let api: Api
  let gate: ClusterNode
  let actor: ClusterNode
  let connection: Connection
  let broker: NatsBroker
  let projectId: string

  before(async () => {
    cluster = await Cluster.create({ PENSTOCK_SHARDS: '1' })
    sink = await startSink()
    api = cluster.api(await cluster.start('admin'))
    gate = await cluster.start('ingress')
    actor = await cluster.start('actor')
    connection = (await connectTo(cluster.environment.PENSTOCK_NATS_URL!)).connection
    broker = createBroker(connection, { clock: systemClock() })
    projectId = await api.createProject()
    await api.createBuffer(projectId, 'orders', {
      batch: { maxItems: 2, idleTimeoutMs: 200, maxWaitFromFirstMs: 1_000 },
      delivery: { url: sink.url('/orders') },
    })
  })

  after(async () => {
    broker.close()
    await connection.close()
    await cluster.stop()
    await sink.close()
  })

  const run = (...args: string[]) => runCommand('cmd/repair/main.ts', args, cluster.environment)
  const send = async (group: string, n: number) => {
    const answer = await cluster.api(gate).ingest(projectId, 'orders', { group, n })
    expect(answer.status, answer.text).to.equal(202)
  }
  const arrived = (): number[] =>
    sink
      .requests('/orders')
      .flatMap((request) => (request.json() as { items: { payload: { n: number } }[] }).items)
      .map(({ payload }) => payload.n)
  const untilArrived = (...numbers: number[]) =>
    eventually(() => expect(arrived()).to.include.members(numbers), { timeoutMs: 20_000 })
  const rowOf = async (node: ClusterNode) =>
    ((await (await fetch(`${node.opsUrl}/shards`)).json()) as ShardTable).shards[0]

  it('refuses while a node has the shard in its hands, and bad arguments', async () => {
    const { code, stdout, stderr } = await run('--shard', '0', '--yes')
    expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' })
    expect(stderr).to.match(
      /^shard 0 is in the hands of \S+ \(boot [0-9a-f-]{36}\): stop the nodes that run shards first/,
    )
    expect(await run()).to.deep.equal({
      code: 2,
      stdout: '',
      stderr: 'usage: npm run repair -- --shard <number> | --all [--renew] [--yes]\n',
    })
    expect(await run('--shard', 'x')).to.include({ code: 2 })
    expect(await run('--shard', '0', '--all')).to.include({ code: 2 })
    expect(await run('--shard', '1')).to.deep.equal({
      code: 1,
      stdout: '',
      stderr: '--shard: must be 0 to 0\n',
    })
  })

  it('has nothing to do at a shard that is as it should be', async () => {
    await send('a', 1)
    await send('a', 2)
    await untilArrived(1, 2)
    expect(await actor.stop()).to.equal(0)
    const before = await broker.journal(0).state()
    expect(await run('--shard', '0', '--yes')).to.deep.equal({
      code: 0,
      stdout: 'Shard 0: nothing to repair.\n',
      stderr: '',
    })
    expect((await broker.journal(0).state()).lastSeq).to.equal(before.lastSeq)
  })

  it('brings a shard back whose logs lost their tails, with all that came since', async () => {
    const [inbox, journal] = await Promise.all([broker.inbox(0).state(), broker.journal(0).state()])
    actor = await cluster.start('actor')
    await send('b', 3)
    await send('b', 4)
    await untilArrived(3, 4)
    expect(await actor.stop()).to.equal(0)
    await loseAbove(connection, broker.inbox(0), { stream: 'INBOX_0', to: inbox.lastSeq })
    await loseAbove(connection, broker.journal(0), { stream: 'JOURNAL_0', to: journal.lastSeq })
    // Ingress goes on: these stand where others stood.
    await send('c', 5)
    await send('c', 6)
    actor = await cluster.start('actor')
    await eventually(async () => expect((await rowOf(actor))?.state).to.equal('lost'))
    expect((await rowOf(actor))?.trouble).to.match(/^shard 0: the journal lost messages/)
    expect(await actor.stop()).to.equal(0)
    const dry = await run('--shard', '0')
    expect(dry).to.include({ code: 3, stderr: '' })
    expect(dry.stdout).to.match(/journal: it ends at \d+, Postgres .*\n.*\nNothing was changed: add --yes/)
    const wet = await run('--shard', '0', '--yes')
    expect(wet).to.include({ code: 0, stderr: '' })
    expect(wet.stdout).to.match(/Repaired: a node may run it\.\n$/)
    actor = await cluster.start('actor')
    await untilArrived(5, 6)
    expect(arrived().sort()).to.deep.equal([1, 2, 3, 4, 5, 6])
    expect((await rowOf(actor))?.state).to.equal('running')
  })
})
