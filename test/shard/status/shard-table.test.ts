/** What `GET /shards` tells of shards that run, wait, failed or run elsewhere, on a real broker. */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { connect, type Database } from '../../../internal/postgres/connection.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import type { Membership } from '../../../internal/shard/ownership/membership.ts'
import type { ActorNode } from '../../../internal/shard/ownership/node.ts'
import { createShardTable, type ShardTable } from '../../../internal/shard/status/shard-table.ts'
import { brokerAt, type TestBroker } from '../../nats/support.ts'
import { alone } from '../../support/alone.ts'
import { eventually } from '../../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../../support/rows.ts'
import { freshDatabase, natsAccount } from '../../support/servers.ts'
import { createNode, ingest, type OwnerOptions } from '../real-owner.ts'

describe('the table of shards', function () {
  this.timeout(120_000)
  let nats: TestBroker
  let db: Database
  let buffer: TestBuffer
  let node: ActorNode
  let boot: string
  let membership: Membership

  beforeEach(async () => {
    nats = await brokerAt((await natsAccount()).url, 2)
    db = connect(await freshDatabase(), { max: 4 })
    buffer = await insertBuffer(db, await insertCustomer(db))
  })

  afterEach(async () => {
    await node.stop(1_000)
    await nats.close()
    await db.end({ timeout: 2 })
  })

  async function start(options: Partial<OwnerOptions> = {}): Promise<void> {
    const members = (of: string) => {
      membership = alone(of, 2)
      return membership
    }
    const created = createNode({ broker: nats.broker, db, buffer, ...options }, 2, members)
    node = created.node
    boot = created.boot
    await node.start()
  }

  /** A table of its own each time: none is shown twice. */
  function look(shards = 2, broker: Pick<TestBroker['broker'], 'inbox'> = nats.broker): Promise<ShardTable> {
    const options = {
      boot,
      shards,
      clock: systemClock(),
      membership,
      broker,
      supervisors: () => node.supervisors(),
    }
    return createShardTable(options)()
  }

  it('shows what a running shard holds, how old it is, and what is outstanding', async () => {
    let release = () => {}
    const answered = new Promise<void>((resolve) => {
      release = resolve
    })
    const destination = async () => {
      await answered
      return 200
    }
    await start({ destination, batch: { idleTimeoutMs: 50, maxItems: 2 } })
    await ingest(nats.broker, buffer, [{ key: 'a', n: 1 }])
    await ingest(nats.broker, buffer, [{ key: 'a', n: 2 }])
    const busy = await eventually(async () => {
      const [row] = (await look()).shards
      return row?.outstanding?.count === 1 && row.lag === 0 && row
    })
    expect(busy).to.deep.include({ shard: 0, here: true, state: 'running', trouble: null, items: 2 })
    expect(busy.epoch).to.equal(node.shard(0)?.epoch)
    expect(busy.payloadBytes).to.be.above(0)
    expect(busy.owners).to.deep.equal([{ boot, node: 'alone' }])
    expect(busy.oldest).to.have.length(1)
    expect(busy.oldest?.[0]).to.include({ bufferUid: buffer.uid, bufferId: buffer.bufferId })
    expect(busy.oldest?.[0]?.ageMs).to.be.within(0, 30_000)
    expect(busy.oldestComplete).to.equal(true)
    expect(busy.outstanding?.oldest).to.include({ bufferUid: buffer.uid, attempt: 1 })
    // One machine, one clock: what is measured is the error of the measurement.
    expect(busy.skewMs).to.be.within(-5_000, 5_000)
    release()
    const idle = await eventually(async () => {
      const [row] = (await look()).shards
      return row?.items === 0 && row
    })
    expect(idle.outstanding).to.deep.equal({ count: 0, oldest: null })
    expect(idle.oldest).to.deep.equal([])
  })

  it('names ten buffers at most, the oldest first', async () => {
    const buffers = await Promise.all(
      Array.from({ length: 12 }, async () => insertBuffer(db, buffer.customerId)),
    )
    await start()
    for (const [n, each] of buffers.entries()) await ingest(nats.broker, each, [{ key: 'a', n }])
    const [row] = await eventually(async () => {
      const { shards } = await look()
      return shards[0]?.items === 12 && shards
    })
    expect(row?.oldest?.map(({ bufferUid }) => bufferUid)).to.deep.equal(
      buffers.slice(0, 10).map(({ uid }) => uid),
    )
    // Their records are none of the test's cache.
    expect(row?.oldest?.[0]?.bufferId).to.equal(null)
  })

  it('shows a quarantined shard with its reason, one of another node, and what the broker does not say', async () => {
    await start()
    await nats.broker.inbox(0).append(Buffer.from('no pack'), { msgId: 'poison', timeoutMs: 5_000 })
    const rows = await eventually(async () => {
      const { shards } = await look(3)
      return shards[0]?.state === 'quarantined' && shards
    })
    expect(rows[0]?.trouble).to.match(/not a pack|a pack of/)
    expect(rows[0]).to.not.have.property('items')
    expect(rows[0]?.lag).to.equal(null)
    expect(rows[1]).to.include({ state: 'running', lag: 0 })
    expect(rows[2]).to.deep.equal({
      shard: 2,
      here: false,
      state: 'elsewhere',
      trouble: null,
      epoch: 0,
      owners: [],
      lag: null,
      skewMs: null,
    })
    const silent = { inbox: () => ({ state: () => Promise.reject(new Error('away')) }) }
    const [, row] = (await look(2, silent as unknown as TestBroker['broker'])).shards
    expect(row).to.include({ state: 'running', lag: null, skewMs: null, items: 0 })
  })

  it('asks the broker once for all that look within a second', async () => {
    await start()
    let asked = 0
    const broker = {
      inbox: (shard: number) => {
        asked++
        return nats.broker.inbox(shard)
      },
    }
    const table = createShardTable({
      boot,
      shards: 2,
      clock: systemClock(),
      membership,
      broker,
      supervisors: () => node.supervisors(),
    })
    await Promise.all([table(), table(), table()])
    expect(asked).to.equal(2)
  })
})
