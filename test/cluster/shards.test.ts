/** `npm run shards` and `GET /shards` of a cluster: who owns what, and making an owner let go. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { ShardTable } from '../../internal/shard/status/shard-table.ts'
import { Cluster, type ClusterNode } from '../support/cluster.ts'
import { runCommand } from '../support/command.ts'
import { eventually } from '../support/eventually.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'

const PROGRAM = 'cmd/shards/main.ts'

describe('npm run shards', function () {
  this.timeout(120_000)
  let cluster: Cluster
  let actor: ClusterNode
  let ingress: ClusterNode

  before(async () => {
    cluster = await Cluster.create({ PENSTOCK_SHARDS: '2' })
    await cluster.start('admin')
    actor = await cluster.start('actor')
    ingress = await cluster.start('ingress')
  })

  after(() => cluster.stop())

  const tableOf = async (node: ClusterNode): Promise<ShardTable> =>
    (await (await fetch(`${node.opsUrl}/shards`)).json()) as ShardTable
  const untilRunning = () =>
    eventually(async () => {
      const table = await tableOf(actor)
      return table.shards.every(({ state }) => state === 'running') && table
    })
  const run = (...args: string[]) => runCommand(PROGRAM, args, cluster.environment)
  const cells = (line: string | undefined) => (line ?? '').split(/ {2,}/)

  it('shows owner, node, epoch and logs of each shard, as journals and leases tell', async () => {
    const table = await untilRunning()
    const { code, stdout, stderr } = await run()
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' })
    const [head, ...rows] = stdout.trimEnd().split('\n')
    expect(cells(head)).to.deep.equal(
      'shard,owner,node,epoch,last commit,state,inbox,of,journal,of,archive,of'.split(','),
    )
    expect(rows).to.have.length(2)
    for (const [shard, row] of rows.entries()) {
      const [number, owner, node, epoch, , state] = cells(row)
      expect({ number, owner, state }).to.deep.equal({
        number: `${shard}`,
        owner: table.boot.slice(0, 8),
        state: 'owned',
      })
      expect(node).to.equal(table.shards[shard]?.owners[0]?.node)
      expect(epoch).to.equal(`${table.shards[shard]?.epoch}`)
    }
  })

  it('adds what the nodes tell themselves, and names one that tells nothing', async () => {
    const { code, stdout, stderr } = await run(actor.opsUrl, ingress.opsUrl)
    expect(code).to.equal(1)
    expect(stderr).to.equal(`${ingress.opsUrl}: 404 no shards run here\n`)
    const [, own] = stdout.split('\n\n')
    expect(own).to.match(/^shard {2}state +horizon +lag +items/)
    expect(own).to.match(/^0 +running +\d+ +0 +0 \(0 B\)/m)
  })

  it('makes an owner let go: the shard is claimed anew under a higher epoch, the other is not', async () => {
    const before = await tableOf(actor)
    const { code, stdout } = await run('--release', '1')
    expect(code).to.equal(0)
    const claim = Number(/by the claim (\d+)/.exec(stdout)?.[1])
    const after = await eventually(async () => {
      const table = await tableOf(actor)
      return table.shards[1]!.epoch > claim && table.shards[1]?.state === 'running' && table
    })
    expect(after.shards[0]?.epoch).to.equal(before.shards[0]?.epoch)
  })

  it('refuses what it cannot do in one line', async () => {
    expect(await run('--release', '2')).to.deep.equal({
      code: 1,
      stdout: '',
      stderr: '--release: must be 0 to 1\n',
    })
    expect(await run('--nonsense')).to.deep.include({ code: 2, stdout: '' })
    const nowhere = { PENSTOCK_DATA_DIR: '/nonexistent' }
    expect(await runCommand(PROGRAM, [], nowhere)).to.deep.equal({
      code: 1,
      stdout: '',
      stderr: 'PENSTOCK_NATS_URL: no broker in /nonexistent; set it, or PENSTOCK_DATA_DIR\n',
    })
    const empty = {
      PENSTOCK_NATS_URL: (await natsAccount()).url,
      PENSTOCK_DATABASE_URL: await freshDatabase(),
    }
    expect((await runCommand(PROGRAM, [], empty)).stderr).to.equal(
      'the broker has no logs of an installation\n',
    )
  })

  it('says when the owner is gone', async () => {
    await untilRunning()
    await actor.stop('SIGKILL')
    await eventually(
      async () => {
        const rows = (await run()).stdout.trimEnd().split('\n').slice(1)
        expect(rows.map((row) => cells(row)[5])).to.deep.equal(['owner is gone', 'owner is gone'])
      },
      { timeoutMs: 20_000 },
    )
  })
})
