/**
 * What is held for long must not make the logs grow: whatever passes beside it, both together take at most four times
 * the live bytes, and a constant. The same as `npm run bench -- million`, with a fiftieth of its items and limits.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'

import { connect, type Database } from '../../internal/postgres/connection.ts'
import { HOUSEKEEPING_LIMITS } from '../../internal/shard/housekeeping/limits.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'
import { createOwner, ingest, numbersOf, type Owner } from './real-owner.ts'

const HELD = 20_000
const SCALE = 1_000_000 / HELD
/** Beyond four times what is live. */
const FREE_BYTES = (64 * 1024 * 1024) / SCALE
const KEEP_BYTES = HOUSEKEEPING_LIMITS.keepBytes / SCALE
const SNAPSHOT_BYTES = HOUSEKEEPING_LIMITS.snapshotBytes / SCALE
const LIMITS = { everyMs: 20, purgeLagMs: 20, keepBytes: KEEP_BYTES, snapshotBytes: SNAPSHOT_BYTES }
/** Two items of a group are a batch; a single one waits. */
const BATCH = { maxItems: 2, idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 }
const PATIENT = { timeoutMs: 60_000, everyMs: 20 }

describe('a shard that holds very many items', function () {
  this.timeout(300_000)
  let db: Database
  let buffer: TestBuffer
  let at: TestBroker
  let owner: Owner

  before(async () => {
    db = connect(await freshDatabase(), { max: 4 })
    buffer = await insertBuffer(db, await insertCustomer(db))
    at = await brokerAt((await natsAccount()).url)
    owner = await start()
  })
  after(async () => {
    await owner.shard.abandon()
    await at.close()
    await db.end({ timeout: 2 })
  })

  async function start(): Promise<Owner> {
    const { broker } = at
    const started = createOwner({ broker, db, buffer, batch: BATCH, housekeeping: LIMITS })
    await started.shard.start()
    await eventually(() => started.shard.state === 'running', PATIENT)
    return started
  }

  const held = () => [...owner.shard.buffered()].reduce((sum, { items }) => sum + items, 0)
  const live = () => [...owner.shard.buffered()].reduce((sum, { storedBytes }) => sum + storedBytes, 0)

  async function stored(): Promise<number> {
    const [inbox, journal] = await Promise.all([at.broker.inbox(0).state(), at.broker.journal(0).state()])
    return inbox.bytes + journal.bytes
  }

  /** Pairs, which are delivered at once. Answers what was stored beyond four times the live bytes at worst. */
  async function passThrough(bytes: number): Promise<number> {
    let worst = Number.NEGATIVE_INFINITY
    for (let sent = 0, n = HELD; sent < bytes; n += 20) {
      const before = owner.sent.length
      const pairs = Array.from({ length: 40 }, (_, i) => ({ key: `busy-${n + (i >> 1)}`, n, pad: 2_000 }))
      await ingest(at.broker, buffer, pairs)
      sent += 40 * 2_000
      await eventually(() => owner.sent.length === before + 20, PATIENT)
      worst = Math.max(worst, (await stored()) - 4 * live())
    }
    return worst
  }

  it('stores at most four times what is live, and a constant, whatever passes beside it', async () => {
    for (let n = 0; n < HELD; n += 500) {
      await ingest(
        at.broker,
        buffer,
        Array.from({ length: 500 }, (_, i) => ({ key: `held-${n + i}`, n: n + i, pad: 150 })),
      )
    }
    await eventually(() => expect(held()).to.equal(HELD), PATIENT)
    const bytes = live()
    expect(await passThrough(10 * bytes)).to.be.below(FREE_BYTES)
    await eventually(() => expect(held()).to.equal(HELD), PATIENT)
    const { firstSeq } = await at.broker.inbox(0).state()
    expect(owner.shard.figures(0)?.horizon, 'what was held was carried along').to.be.at.least(firstSeq)
    expect(owner.problems).to.deep.equal([])
  })

  it('is taken over whole, and all of it can still be sent', async () => {
    await owner.shard.abandon()
    owner = await start()
    expect(held()).to.equal(HELD)
    for (let n = 0; n < HELD; n += 500) {
      await ingest(
        at.broker,
        buffer,
        Array.from({ length: 500 }, (_, i) => ({ key: `held-${n + i}`, n: n + i })),
      )
    }
    await eventually(() => expect(owner.sent.length).to.equal(HELD), PATIENT)
    const numbers = owner.sent.map(({ body }) => numbersOf(body)).sort(([a = 0], [b = 0]) => a - b)
    expect(numbers).to.deep.equal(Array.from({ length: HELD }, (_, n) => [n, n]))
    expect(owner.problems).to.deep.equal([])
  })
})
