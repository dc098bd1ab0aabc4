/**
 * Losses at moments at which nobody looks: what survived must tell of them, before positions come to mean two things
 * (docs/architecture/protocol.md, "Lost tail").
 */
import { cpSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, beforeEach, describe, it } from 'mocha'
import type { NatsServer } from '../../internal/embedded/nats-server.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { Broker } from '../../internal/shard/broker.ts'
import { appendEpoch } from '../../internal/shard/claim/takeover.ts'
import { decodeCommit, encodeCommit } from '../../internal/shard/journal/codec.ts'
import { LostTailError } from '../../internal/shard/lost-tail.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase, natsAccount, ownNats } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { cutJournals, holdingBehindLooks, holdingInboxes } from './hindered-brokers.ts'
import { createOwner, ingest, journalRecords } from './real-owner.ts'
import { loseAbove } from './repair/loss.ts'

const OTHERS = [1, 2].map((number) => `00000000-0000-4000-8000-00000000000${number}`) as [string, string]
/** No horizon, and no purge. */
const AT_REST = { everyMs: 600_000 }

describe('a broker that loses messages while nobody looks', function () {
  this.timeout(120_000)
  let db: Database
  let buffer: TestBuffer
  const ends: (() => Promise<unknown>)[] = []

  beforeEach(async () => {
    db = connect(await freshDatabase(), { max: 4 })
    const opened = db
    ends.push(() => opened.end({ timeout: 2 }))
    buffer = await insertBuffer(db, await insertCustomer(db))
  })

  after(async () => {
    for (const end of ends.reverse()) await end()
  })

  async function brokerOf(url: string): Promise<TestBroker> {
    const nats = await brokerAt(url)
    ends.push(() => nats.close())
    return nats
  }

  const wrote = (broker: Broker, type: string, count = 1) =>
    eventually(async () => {
      const records = await journalRecords(broker)
      expect(records.filter(({ record }) => record.type === type).length).to.be.at.least(count)
    })

  describe('from the inbox, after an owner has committed the result of the last item there', () => {
    let server: NatsServer
    let broker: Broker
    let dir: string
    let synced: string

    /** The inbox as it was on the disk before its last item; the journal has the result of it. */
    beforeEach(async () => {
      dir = join(tempFolder('unseen'), 'nats')
      synced = join(tempFolder('unseen-inbox'), 'inbox')
      server = await ownNats({ dir, sync: 'always' })
      broker = (await brokerOf(server.url)).broker
      const first = createOwner({ broker, db, buffer, housekeeping: AT_REST })
      await first.shard.start()
      await ingest(broker, buffer, [{ key: 'a', n: 1 }])
      await wrote(broker, 'done')
      await server.stop()
      cpSync(inboxFolder(), synced, { recursive: true })
      await server.restart()
      await eventually(() => ingest(broker, buffer, [{ key: 'a', n: 2 }]))
      await wrote(broker, 'done', 2)
      await first.shard.abandon()
    })

    function inboxFolder(): string {
      const found = readdirSync(dir, { recursive: true, encoding: 'utf8' }).find((path) =>
        path.endsWith('/streams/INBOX_0'),
      )
      return join(dir, found!)
    }

    /** All servers lose power, and the inbox what it had not synced. The next pack of a sender, or a probe of the owner, takes its place. */
    async function cutPower(): Promise<void> {
      await server.stop()
      const folder = inboxFolder()
      rmSync(folder, { recursive: true })
      cpSync(synced, folder, { recursive: true })
      await server.restart()
      await eventually(() => ingest(broker, buffer, [{ key: 'a', n: 3 }]))
    }

    it('is told by the next owner, which had looked at the inbox right before', async () => {
      const looked = Promise.withResolvers<void>()
      const over = Promise.withResolvers<void>()
      const next = createOwner({
        broker: holdingBehindLooks(broker, looked.resolve, over.promise),
        db,
        buffer,
        housekeeping: AT_REST,
      })
      const started = next.shard.start().catch(() => {})
      await looked.promise
      await cutPower()
      // Whoever listens has checked by then.
      await new Promise((resume) => setTimeout(resume, 1_000))
      over.resolve()
      await started
      await eventually(() => expect(next.ended).to.be.instanceOf(LostTailError))
      expect(next.sent).to.deep.equal([])
    })

    it('is told by the next owner, which has read nothing of the inbox yet', async () => {
      const over = Promise.withResolvers<void>()
      const next = createOwner({
        broker: holdingInboxes(broker, over.promise),
        db,
        buffer,
        housekeeping: AT_REST,
      })
      await next.shard.start()
      await cutPower()
      over.resolve()
      await eventually(() => expect(next.ended).to.be.instanceOf(LostTailError))
      expect(next.sent).to.deep.equal([])
    })
  })

  it('lets no owner repeat a commit behind the claims that took the place of what it expects', async () => {
    const { broker, connection } = await brokerOf((await natsAccount()).url)
    let isCut = false
    let look = Promise.resolve()
    const hindered = cutJournals(
      broker,
      () => isCut,
      () => look,
    )
    const owner = createOwner({ broker: hindered.broker, db, buffer, housekeeping: AT_REST })
    await owner.shard.start()
    await ingest(broker, buffer, [{ key: 'a', n: 1 }])
    await wrote(broker, 'done')
    const journal = broker.journal(0)
    const { lastSeq } = await journal.state()
    await eventually(() => owner.shard.lastSeq === lastSeq)
    // Its next commit is under way, and the power goes: the last three messages are lost, and others take their places.
    isCut = true
    await ingest(broker, buffer, [{ key: 'a', n: 2 }])
    await eventually(() => expect(owner.problems.join()).to.include('does not take a commit'), {
      timeoutMs: 10_000,
    })
    await loseAbove(connection, journal, { stream: 'JOURNAL_0', to: lastSeq - 3 })
    const clock = systemClock()
    let epoch = 0
    for (const boot of OTHERS)
      epoch = await appendEpoch(journal, { boot, claim: 1, clock, stopped: () => false })
    const proof = encodeCommit({ boot: OTHERS[1], epoch, at: clock.now(), highWater: null }, [])
    const stored = await journal.append(proof, { msgId: 'proof', expectLastSeq: epoch, timeoutMs: 5_000 })
    expect(stored).to.include({ kind: 'stored', seq: lastSeq })
    // It is back before it is told what became of its last commit.
    const told = Promise.withResolvers<void>()
    look = told.promise
    isCut = false
    hindered.reconnect()
    await new Promise((resume) => setTimeout(resume, 500))
    told.resolve()
    await eventually(() => expect(owner.ended).to.be.instanceOf(LostTailError))
    const last = await journal.last()
    expect(decodeCommit(last!.data).boot).to.equal(OTHERS[1])
  })
})
