/**
 * Purges by a stale owner are harmless (design, section 4): they follow a committed record, so they are true whoever sends
 * them, and however late they reach the broker.
 */
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import type { Broker, Log } from '../../internal/shard/broker.ts'
import { FencedError } from '../../internal/shard/ports.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'
import { ingest, journalRecords, numbersOf, type Owner, type OwnerOptions, startOwner } from './real-owner.ts'

/** Only when a test asks for it. */
const BY_HAND = { everyMs: 600_000, purgeLagMs: 0, keepBytes: 10_000, keepRatio: 1, snapshotBytes: 1_000 }
/** A group goes out with its fifth item, never by time. */
const BY_FIVE = { maxItems: 5, idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 }

type Purge = { log: 'inbox' | 'journal'; below: number }

describe('purges by a stale owner', function () {
  this.timeout(60_000)
  let nats: TestBroker
  let db: Database
  let buffer: TestBuffer
  let owners: Owner[]

  beforeEach(async () => {
    nats = await brokerAt((await natsAccount()).url)
    db = connect(await freshDatabase(), { max: 4 })
    buffer = await insertBuffer(db, await insertCustomer(db))
    owners = []
  })

  afterEach(async () => {
    await Promise.all(owners.map(({ shard }) => shard.abandon()))
    await nats.close()
    await db.end({ timeout: 2 })
  })

  async function own(options: Partial<OwnerOptions> = {}): Promise<Owner> {
    const given = { broker: nats.broker, db, buffer, housekeeping: BY_HAND, batch: BY_FIVE }
    const owner = startOwner({ ...given, ...options })
    owners.push(owner)
    await owner.shard.start()
    await eventually(() => owner.shard.state === 'running')
    return owner
  }

  /** The broker, but that purges are on their way and do not arrive. */
  function delayingPurges(): { broker: Broker; purges: Purge[] } {
    const purges: Purge[] = []
    const slow = (name: Purge['log'], log: Log): Log =>
      new Proxy(log, {
        get: (target, property) => {
          if (property === 'purgeBelow') return async (below: number) => purges.push({ log: name, below })
          const value = Reflect.get(target, property)
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
    const { broker } = nats
    return {
      purges,
      broker: {
        inbox: (shard) => slow('inbox', broker.inbox(shard)),
        journal: (shard) => slow('journal', broker.journal(shard)),
        publish: broker.publish.bind(broker),
        subscribe: broker.subscribe.bind(broker),
        onReconnect: broker.onReconnect.bind(broker),
      },
    }
  }

  /** Five rounds of a whole batch, and an item each that is held; numbers ascend. */
  async function load(from: number): Promise<void> {
    for (let round = 0; round < 5; round++) {
      const n = from + round * 10
      await ingest(
        nats.broker,
        buffer,
        [0, 1, 2, 3, 4].map((i) => ({ key: 'busy', n: n + i, pad: 1_000 })),
      )
      if (round < 2) await ingest(nats.broker, buffer, [{ key: 'held', n: n + 9, pad: 100 }])
    }
  }

  const sent = () => owners.flatMap((owner) => owner.sent.flatMap(({ body }) => numbersOf(body)))
  const batches = (owner: Owner) => owner.sent.length
  const sizes = async () => ({
    inbox: (await nats.broker.inbox(0).state()).messages,
    journal: (await nats.broker.journal(0).state()).messages,
  })

  it('that arrive after the claim of another take nothing that anybody still needs', async () => {
    const { broker, purges } = delayingPurges()
    const stale = await own({ broker })
    await load(0)
    await eventually(() => expect(batches(stale)).to.equal(5))
    // The first round writes horizon, keeps and a snapshot; the second purges behind them.
    await eventually(async () => {
      await stale.shard.housekeep()
      expect(new Set(purges.map(({ log }) => log))).to.deep.equal(new Set(['inbox', 'journal']))
    })
    const next = await own()
    await load(100)
    await eventually(() => expect(batches(next)).to.equal(5))
    const before = await sizes()
    for (const { log, below } of purges) await nats.broker[log](0).purgeBelow(below)
    const after = await sizes()
    expect([after.inbox < before.inbox, after.journal < before.journal], 'they do purge').to.deep.equal([
      true,
      true,
    ])
    // Whoever comes now finds the held items and goes on, and nothing that was over comes again.
    await next.shard.abandon()
    const last = await own()
    await ingest(nats.broker, buffer, [{ key: 'held', n: 999 }])
    await eventually(() =>
      expect(last.sent.map(({ body }) => numbersOf(body))).to.deep.equal([[9, 19, 109, 119, 999]]),
    )
    expect(sent()).to.have.length(new Set(sent()).size)
    expect([...next.problems, ...last.problems]).to.deep.equal([])
  })

  it('end with its claim: a round of housekeeping after it purges nothing', async () => {
    const { broker, purges } = delayingPurges()
    const stale = await own({ broker })
    await load(0)
    await eventually(() => expect(batches(stale)).to.equal(5))
    const next = await own()
    await stale.shard.housekeep().catch(() => {})
    await eventually(() => stale.ended instanceof FencedError)
    expect(purges).to.deep.equal([])
    const claim = (await journalRecords(nats.broker)).findLast(({ record }) => record.type === 'epoch')!
    expect(claim.boot).to.equal(next.boot)
  })
})
