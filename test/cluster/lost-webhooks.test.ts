/** Webhooks that the broker acknowledged and lost while no actor was there to read them. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { brokerAt } from '../nats/support.ts'
import { loseAbove } from '../shard/repair/loss.ts'
import { Cluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

const LINE = 'the broker lost webhooks that it had acknowledged'

describe('webhooks that are lost before an actor has read them', function () {
  this.timeout(120_000)
  let cluster: Cluster
  let proxy: TcpProxy
  before(async () => {
    cluster = await Cluster.create({ PENSTOCK_SHARDS: '1' })
    proxy = await TcpProxy.to(Number(new URL(cluster.natsUrl).port))
  })
  after(async () => {
    await cluster.stop()
    await proxy.close()
  })

  it('are missed by the ingress that took them, after its reconnect', async () => {
    const admin = cluster.api(await cluster.start('admin'))
    const ingress = await cluster.start('ingress', { PENSTOCK_NATS_URL: proxy.through(cluster.natsUrl) })
    const projectId = await admin.createProject()
    await admin.createBuffer(projectId, 'orders', { delivery: { url: 'http://127.0.0.1:9/' } })
    const gate = cluster.api(ingress)
    const send = async () =>
      expect((await gate.ingest(projectId, 'orders', { group: 'g' })).status).to.equal(202)
    for (let n = 0; n < 3; n++) await eventually(send)

    const beside = await brokerAt(cluster.natsUrl)
    const inbox = beside.broker.inbox(0)
    const { firstSeq, lastSeq } = await inbox.state()
    await loseAbove(beside.connection, inbox, { stream: 'INBOX_0', to: firstSeq })
    await beside.close()
    proxy.reset()

    const told = () =>
      ingress.service
        .output()
        .split('\n')
        .filter((line) => line.includes(LINE))
    // Not before a server that was behind would have caught up.
    await eventually(() => expect(told()).to.have.length(1), { timeoutMs: 60_000 })
    expect(JSON.parse(told()[0]!)).to.include({ shard: 0, acknowledged: lastSeq, end: firstSeq })
  })
})
