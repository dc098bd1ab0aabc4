/**
 * Logs near their limits (fault matrix, row 24): what is held must not keep what is over from being purged, or one
 * held buffer would stop all others on its shard.
 */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'

import { connect, type Database } from '../../internal/postgres/connection.ts'
import type { Broker } from '../../internal/shard/broker.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'
import { createOwner, ingest, numbersOf, type Owner } from './real-owner.ts'
import { storedState } from './stored-state.ts'

const INBOX_BYTES = 400_000
/** Like the service's own, but quick. */
const QUICK = { everyMs: 20, purgeLagMs: 50, snapshotBytes: 20_000 }
/** Two items of a group are a batch; a single one waits. */
const BATCH = { maxItems: 2, idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 }

describe('an owner whose logs are nearly full', function () {
  this.timeout(120_000)
  let db: Database
  let buffer: TestBuffer
  const ends: (() => unknown)[] = []

  // One each, as its logs: a database that knows of other logs takes these for made anew.
  beforeEach(async () => {
    db = connect(await freshDatabase(), { max: 4 })
    buffer = await insertBuffer(db, await insertCustomer(db))
  })
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
    await db.end({ timeout: 2 })
  })

  async function brokerWith(limits: { inbox: number; journal?: number }): Promise<TestBroker> {
    const at = await brokerAt((await natsAccount()).url)
    ends.push(() => at.close())
    const { streams } = await at.connection.nats.jetstreamManager()
    await streams.update('INBOX_0', { max_bytes: limits.inbox })
    if (limits.journal !== undefined) await streams.update('JOURNAL_0', { max_bytes: limits.journal })
    return at
  }

  async function ownerOn({ broker }: TestBroker, batch: Partial<typeof BATCH> = BATCH): Promise<Owner> {
    const owner = createOwner({ broker, db, buffer, batch, housekeeping: QUICK })
    ends.push(() => owner.shard.abandon())
    await owner.shard.start()
    await eventually(() => owner.shard.state === 'running')
    return owner
  }

  /** Single items of groups of their own, about `bytes` in all: they stay. */
  async function hold({ broker }: TestBroker, bytes: number, first = 0): Promise<number> {
    const count = Math.round(bytes / 10_000)
    for (let n = first; n < first + count; n++)
      await ingest(broker, buffer, [{ key: `held-${n}`, n, pad: 9_700 }])
    return count
  }

  /** Sent again while the inbox is full, for as long as housekeeping may take. */
  async function send(broker: Broker, items: Parameters<typeof ingest>[2]): Promise<void> {
    await eventually(() => ingest(broker, buffer, items).then(() => true), { timeoutMs: 20_000, everyMs: 20 })
  }

  /** Batches that are delivered at once, until so many bytes went through; full is waited out. */
  async function passThrough({ broker }: TestBroker, owner: Owner, bytes: number): Promise<void> {
    for (let sent = 0, n = 1_000; sent < bytes; sent += 20_000, n++) {
      const pair = pairOf(n)
      const before = owner.sent.length
      await send(broker, pair)
      await eventually(() => owner.sent.length > before)
    }
  }

  for (const percent of [10, 30, 50, 70]) {
    it(`goes on while ${percent} % of the inbox are held`, async () => {
      const at = await brokerWith({ inbox: INBOX_BYTES })
      const owner = await ownerOn(at)
      const held = await hold(at, (INBOX_BYTES * percent) / 100)
      await passThrough(at, owner, 3 * INBOX_BYTES)
      await untilBuffered(owner, held)
      expect(owner.problems).to.deep.equal([])
      // Everything held is still whole: its second item completes each batch.
      const before = owner.sent.length
      for (let n = 0; n < held; n++) await ingest(at.broker, buffer, [{ key: `held-${n}`, n }])
      await eventually(() => owner.sent.length === before + held)
      const numbers = owner.sent.slice(before).map(({ body }) => numbersOf(body))
      expect(numbers.sort(([a = 0], [b = 0]) => a - b)).to.deep.equal(
        Array.from({ length: held }, (_, n) => [n, n]),
      )
    })
  }

  it('cuts its journal again and again, though items are kept in it', async () => {
    const at = await brokerWith({ inbox: 500_000, journal: 1_000_000 })
    const owner = await ownerOn(at)
    let held = 0
    while (held < 40) {
      // Single items of groups of their own: they stay, and are carried into the journal.
      await send(
        at.broker,
        Array.from({ length: 5 }, () => ({ key: `held-${held}`, n: held++, pad: 9_700 })),
      )
      await passThrough(at, owner, 100_000)
    }
    for (const cut of ['once', 'twice']) {
      const { lastSeq } = await at.broker.journal(0).state()
      for (let round = 0; (await at.broker.journal(0).state()).firstSeq <= lastSeq; round++) {
        const before = owner.sent.length
        const keys = Array.from({ length: 100 }, (_, n) => `${cut}-${round}-${n >> 1}`)
        await send(
          at.broker,
          keys.map((key) => ({ key, n: 2_000 })),
        )
        await eventually(() => expect(owner.sent.length, cut).to.equal(before + 50), { timeoutMs: 60_000 })
      }
    }
    await untilBuffered(owner, held)
    expect(owner.problems).to.deep.equal([])
  })

  it('fills up with what is held, keeps room for itself, and drains without hands', async () => {
    const at = await brokerWith({ inbox: INBOX_BYTES, journal: 600_000 })
    const owner = await ownerOn(at)
    let held = 0
    let refused = 0
    await eventually(
      async () => {
        try {
          held += await hold(at, 10_000, held)
          // What is over in between makes keeps worth their while.
          await ingest(at.broker, buffer, pairOf(held))
          refused = 0
        } catch (error) {
          expect(String(error)).to.include('full')
          refused++
        }
        // For good: the owner had time to carry away what it can.
        return refused > 100
      },
      { timeoutMs: 20_000 },
    )
    expect(held * 10_000, 'more than the inbox alone').to.be.above(INBOX_BYTES)
    const journal = await at.broker.journal(0).state()
    expect(journal.bytes).to.be.below(journal.maxBytes * 0.95)
    const state = await storedState(at.broker)
    expect(state.kept.size * 9_700, 'what is kept').to.be.within(1, journal.maxBytes * 0.5)
    const together = Map.groupBy(state.kept.values(), ({ commit }) => commit)
    for (const items of together.values())
      expect(items.length * 9_700, 'what goes at once').to.be.at.most(journal.maxBytes / 16)
    expect(owner.problems).to.deep.equal([])

    // The next owner may send all of it.
    await owner.shard.abandon()
    const next = await ownerOn(at, { ...BATCH, idleTimeoutMs: 100 })
    await eventually(() => {
      const numbers = next.sent.flatMap(({ body }) => numbersOf(body)).filter((n) => n < 1_000)
      expect(numbers.sort((a, b) => a - b)).to.deep.equal([...Array(held).keys()])
    })
    await passThrough(at, next, 2 * INBOX_BYTES)
    await eventually(() => [...next.shard.buffered()].length === 0)
    expect(next.problems).to.deep.equal([])
  })
})

/** A whole batch. */
function pairOf(n: number) {
  return [n, n].map((each) => ({ key: `flow-${n}`, n: 1_000 + each, pad: 9_700 }))
}

/** What was just sent is over a commit later. */
async function untilBuffered({ shard }: Owner, held: number): Promise<void> {
  await eventually(() =>
    expect([...shard.buffered()].reduce((sum, { items }) => sum + items, 0)).to.equal(held),
  )
}
