/**
 * A broker that stood still for longer than it remembers message ids stores a pack twice (docs/architecture/protocol.md,
 * "Packs"). Its items must not go out under a second key, whoever owns the shard by then.
 */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import type { Broker } from '../../internal/shard/broker.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'
import { refusingCommits } from './hindered-brokers.ts'
import {
  copyOf,
  createOwner,
  ingest,
  journalRecords,
  numbersOf,
  type Owner,
  type OwnerOptions,
  repetitionOf,
} from './real-owner.ts'

const ADA = [1, 2].map((n) => ({ key: 'ada', n }))
const BY_COUNT = { maxItems: 2, idleTimeoutMs: 3_600_000, maxWaitFromFirstMs: 3_600_000 }

describe('a pack that the broker stored twice', function () {
  this.timeout(60_000)
  let nats: TestBroker
  let db: Database
  let buffer: TestBuffer
  const owners: Owner[] = []

  beforeEach(async () => {
    nats = await brokerAt((await natsAccount()).url, 1)
    db = connect(await freshDatabase(), { max: 4 })
    buffer = await insertBuffer(db, await insertCustomer(db))
  })

  afterEach(async () => {
    for (const { shard } of owners.splice(0)) await shard.abandon()
    await nats.close()
    await db.end({ timeout: 2 })
  })

  async function own(options: Pick<OwnerOptions, 'housekeeping'> & { broker?: Broker } = {}): Promise<Owner> {
    const housekeeping = { everyMs: 50, purgeLagMs: 0 }
    const owner = createOwner({ broker: nats.broker, db, buffer, batch: BY_COUNT, housekeeping, ...options })
    owners.push(owner)
    await owner.shard.start()
    return owner
  }

  /** Two items close a batch: the owner has read everything before them, and this is all that it sent meanwhile. */
  async function untilRead(owner: Owner, n: number): Promise<number[][]> {
    await ingest(nats.broker, buffer, [
      { key: `mark ${n}`, n },
      { key: `mark ${n}`, n },
    ])
    const sent = () => owner.sent.map(({ body }) => numbersOf(body))
    await eventually(() => expect(sent().at(-1)).to.deep.equal([n, n]))
    return sent().slice(0, -1)
  }

  /** Its items with a way to store it again. */
  async function store(items: { key: string; n: number }[]): Promise<() => Promise<number>> {
    return repetitionOf(nats.broker, await ingest(nats.broker, buffer, items))
  }

  it('goes out once while its items are buffered', async () => {
    const owner = await own()
    const again = await store([{ key: 'ada', n: 1 }])
    await again()
    expect(await untilRead(owner, 100)).to.deep.equal([])
    await ingest(nats.broker, buffer, [{ key: 'ada', n: 2 }])
    expect(await untilRead(owner, 101)).to.deep.equal([
      [100, 100],
      [1, 2],
    ])
  })

  it('goes out once when its items were delivered before', async () => {
    const owner = await own()
    const again = await store(ADA)
    await eventually(() => expect(owner.sent).to.have.length(1))
    await again()
    expect(await untilRead(owner, 100)).to.deep.equal([[1, 2]])
  })

  it('goes out once when its writer has stored others meanwhile', async () => {
    const owner = await own()
    const again = await store([{ key: 'ada', n: 1 }])
    await ingest(nats.broker, buffer, [{ key: 'bob', n: 3 }])
    await again()
    await ingest(nats.broker, buffer, [{ key: 'bob', n: 4 }])
    expect(await untilRead(owner, 100)).to.deep.equal([[3, 4]])
  })

  it('goes out once when the next owner reads only the second one', async () => {
    const first = await own()
    const again = await store(ADA)
    await untilRead(first, 100)
    await eventually(async () => expect((await nats.broker.inbox(0).state()).messages).to.equal(1))
    await first.shard.stop(5_000)
    const second = await own()
    await again()
    expect(await untilRead(second, 101)).to.deep.equal([])
  })

  it('goes out once when the owner that refused it could not write that down', async () => {
    let silent = false
    const first = await own({ broker: refusingCommits(nats.broker, 0, () => silent) })
    const again = await store(ADA)
    await untilRead(first, 100)
    silent = true
    const seq = await again()
    await eventually(() => expect(first.shard.figures(0)?.cursor).to.be.above(seq))
    await first.shard.abandon()
    const second = await own()
    expect(await untilRead(second, 101)).to.deep.equal([])
    const drops = (await journalRecords(nats.broker)).filter(({ record }) => record.type === 'drop')
    expect(drops.map(({ boot }) => boot)).to.deep.equal([second.boot, second.boot])
  })

  it('drops its duplicates at both places: the next owner finds neither when the original is over', async () => {
    const original = { key: 'ada', n: 1, messageId: 'm' }
    await ingest(nats.broker, buffer, [original])
    await copyOf(nats.broker, await ingest(nats.broker, buffer, [{ ...original, n: 2 }]))
    const first = await own({ housekeeping: { everyMs: 600_000 } })
    await ingest(nats.broker, buffer, [{ key: 'ada', n: 3 }])
    expect(await untilRead(first, 100)).to.deep.equal([[1, 3]])
    await first.shard.stop(5_000)
    const second = await own()
    await ingest(nats.broker, buffer, [{ key: 'ada', n: 4 }])
    expect(await untilRead(second, 101)).to.deep.equal([])
  })

  it('does not hold the inbox', async () => {
    const owner = await own()
    const again = await store(ADA)
    const seq = await again()
    await untilRead(owner, 100)
    await eventually(async () => expect((await nats.broker.inbox(0).state()).firstSeq).to.be.above(seq))
  })
})
