import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { connect, type Database } from '../../../internal/postgres/connection.ts'
import type { ActorNode } from '../../../internal/shard/ownership/node.ts'
import { brokerAt, type TestBroker } from '../../nats/support.ts'
import { eventually } from '../../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../../support/rows.ts'
import { freshDatabase, natsAccount } from '../../support/servers.ts'
import { refusingCommits } from '../hindered-brokers.ts'
import { createNode, ingest, numbersOf } from '../real-owner.ts'

describe('actor node', function () {
  this.timeout(120_000)
  let nats: TestBroker
  let db: Database
  let buffer: TestBuffer
  let node: ActorNode

  beforeEach(async () => {
    nats = await brokerAt((await natsAccount()).url, 2)
    db = connect(await freshDatabase(), { max: 4 })
    buffer = await insertBuffer(db, await insertCustomer(db))
  })

  afterEach(async () => {
    await node.stop(5_000)
    await nats.close()
    await db.end({ timeout: 2 })
  })

  it('quarantines a shard with a poisoned message alone, and claims it again after a back-off', async () => {
    const created = createNode({ broker: nats.broker, db, buffer }, 2)
    node = created.node
    await node.start()
    await ingest(nats.broker, buffer, [{ key: 'a', n: 1 }], 0)
    await nats.broker.inbox(0).append(Buffer.from('no pack'), {
      subject: 'items.0.mixed',
      msgId: 'poison',
      timeoutMs: 5_000,
    })
    await eventually(() => expect(node.troubles().map(({ shard }) => shard)).to.deep.equal([0]))
    expect(created.problems.join()).to.match(/quarantined: CorruptPackError/)
    await ingest(nats.broker, buffer, [{ key: 'b', n: 2 }], 1)
    await eventually(() => created.sent.some(({ body }) => numbersOf(body).includes(2)))
    expect(node.shard(1)?.state).to.equal('running')
    // It is claimed again after a back-off, again and again, while the poison is there.
    await eventually(() =>
      expect(created.problems.filter((text) => text.includes('quarantined')).length).to.be.above(1),
    )
  })

  it('does without a shard whose journal takes nothing, says so, and runs it once it does', async () => {
    let full = true
    const broker = refusingCommits(nats.broker, 0, () => full)
    const created = createNode({ broker, db, buffer, firstClaimsMs: 300 }, 2)
    node = created.node
    await node.start()
    await eventually(() => expect(node.shard(1)?.state).to.equal('running'))
    expect(node.troubles().map(({ shard }) => shard)).to.deep.equal([0])
    await eventually(() => expect(created.problems.join()).to.include('does not take a commit: full'))
    expect(node.troubles().map(({ trouble }) => trouble)).to.deep.equal([
      'the journal does not take a commit: full',
    ])
    full = false
    await eventually(() => expect(node.shard(0)?.state).to.equal('running'))
    await eventually(() => expect(node.troubles()).to.deep.equal([]))
    // The same of one that runs already.
    full = true
    await ingest(nats.broker, buffer, [{ key: 'a', n: 1 }], 0)
    await eventually(() => expect(node.troubles().map(({ shard }) => shard)).to.deep.equal([0]))
    expect(created.sent).to.deep.equal([])
    full = false
    await eventually(() => expect(node.troubles()).to.deep.equal([]))
    await eventually(() => expect(created.sent).to.have.length(1))
  })

  it('runs every shard, and hands all of them back', async () => {
    const created = createNode({ broker: nats.broker, db, buffer }, 2)
    node = created.node
    await node.start()
    await eventually(() => created.states.filter((state) => state === 'running').length === 2)
    expect(node.troubles()).to.deep.equal([])
    await node.stop(5_000)
    expect(created.states.filter((state) => state === 'released').length).to.equal(2)
  })
})
