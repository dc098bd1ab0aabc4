/** A shard whose broker lost a tail is repaired: nothing that came afterwards is lost, and no key names two bodies. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { groupToken } from '../../../internal/domain/group.ts'
import { connect, type Database } from '../../../internal/postgres/connection.ts'
import { createDeadLetters } from '../../../internal/postgres/dead-letters.ts'
import { createProjection } from '../../../internal/postgres/projection.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { SNAPSHOTS } from '../../../internal/shard/archive/snapshot-subjects.ts'
import { appendEpoch } from '../../../internal/shard/claim/takeover.ts'
import { LostTailError } from '../../../internal/shard/lost-tail.ts'
import { examine, needsRepair } from '../../../internal/shard/repair/examination.ts'
import { JournalGoneError } from '../../../internal/shard/repair/journal-repair.ts'
import { repairShard } from '../../../internal/shard/repair/repair.ts'
import { brokerAt, type TestBroker } from '../../nats/support.ts'
import { eventually } from '../../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../../support/rows.ts'
import { freshDatabase, natsAccount } from '../../support/servers.ts'
import { journalRecords, numbersOf, type Owner } from '../real-owner.ts'
import { numbersSent, RepairHarness } from './harness.ts'
import { Interruption, interrupted } from './interruption.ts'

const SHARDS = 40
/** Everything is due at once. */
const SOON = { batch: { maxItems: 2, idleTimeoutMs: 100, maxWaitFromFirstMs: 1_000 } }

describe('the repair of a shard', function () {
  this.timeout(120_000)
  let nats: TestBroker
  let db: Database
  let buffer: TestBuffer
  let harness: RepairHarness
  let shard = 0

  before(async () => {
    nats = await brokerAt((await natsAccount()).url, SHARDS)
    db = connect(await freshDatabase(), { max: 4 })
    buffer = await insertBuffer(db, await insertCustomer(db))
  })

  after(async () => {
    await nats.close()
    await db.end({ timeout: 2 })
  })

  beforeEach(() => {
    harness = new RepairHarness(nats, db, buffer, shard++)
  })

  // An owner that a failed test leaves behind would go on counting into the tables of the others.
  afterEach(() => harness.abandon())

  /** It stops as one that lost its tail, and has sent nothing. */
  async function expectLost(): Promise<void> {
    const owner = await harness.own([]).catch((error: Error) => error)
    const error = () => (owner instanceof Error ? owner : owner.ended)
    await eventually(() => expect(error()).to.be.instanceOf(LostTailError))
    if (!(owner instanceof Error)) expect(owner.sent).to.deep.equal([])
  }

  /** What an owner sends that takes the shard over, once it has sent all of `wanted`. */
  async function untilSent(wanted: readonly number[]): Promise<Owner> {
    const owner = await harness.own([], SOON)
    await eventually(() => expect(numbersSent(owner)).to.include.members([...wanted]))
    return owner
  }

  /**
   * Delivered: a, and c with one item on either side of the loss. Outstanding: b below it, g across it. Then the
   * inbox loses what stands above b, and senders bring e and f to positions that the journal names.
   */
  async function loseInbox(): Promise<void> {
    const owner = await harness.own(['b', 'g'])
    await harness.send({ key: 'a', n: 1 }, { key: 'a', n: 2 }, { key: 'c', n: 5 }, { key: 'g', n: 20 })
    await harness.send({ key: 'b', n: 3 }, { key: 'b', n: 4 })
    await harness.wrote('seal', 2)
    const { inbox } = await harness.lastSeqs()
    await harness.send({ key: 'a', n: 6 }, { key: 'a', n: 7 }, { key: 'g', n: 21 }, { key: 'c', n: 13 })
    await harness.wrote('done', 3)
    // The horizon passes c and carries what was seen last.
    await eventually(async () => {
      const marks = (await journalRecords(nats.broker, harness.shard)).filter(
        ({ record }) => record.type === 'horizon' && record.seq >= inbox - 2,
      )
      expect(marks).to.not.deep.equal([])
    })
    await owner.shard.abandon()
    await harness.lose('inbox', inbox)
    await harness.send({ key: 'e', n: 9 }, { key: 'e', n: 10, messageId: 'duplicate' }, { key: 'f', n: 11 })
  }

  /** Outstanding: b, and g of which the first item is purged with the message behind it. e and f wait. */
  async function purgeInbox(): Promise<{ owner: Owner; firstSeq: number }> {
    const owner = await harness.own(['b', 'g'])
    await harness.send({ key: 'g', n: 1 })
    await harness.send({ key: 'e', n: 2 }, { key: 'g', n: 3 }, { key: 'b', n: 4 }, { key: 'b', n: 5 })
    await harness.send({ key: 'f', n: 6 })
    await harness.wrote('seal', 2)
    await owner.shard.stop(5_000)
    const { firstSeq } = await harness.inbox.state()
    const manager = await nats.connection.nats.jetstreamManager()
    await manager.streams.purge(`INBOX_${harness.shard}`, { seq: firstSeq + 2 })
    return { owner, firstSeq }
  }

  it('finds nothing at a healthy shard, and changes nothing', async () => {
    const owner = await harness.own(['b'])
    await harness.send(
      { key: 'a', n: 1 },
      { key: 'a', n: 2 },
      { key: 'b', n: 3 },
      { key: 'b', n: 4 },
      { key: 'c', n: 5 },
    )
    await harness.wrote('done', 1)
    await owner.shard.stop(5_000)
    const before = await harness.lastSeqs()
    expect(needsRepair(await examine(harness.repairOptions()))).to.equal(false)
    expect(await repairShard(harness.repairOptions())).to.equal(null)
    expect(await harness.lastSeqs()).to.deep.equal(before)
  })

  it('finds nothing at a shard that nobody ever claimed', async () => {
    await harness.send({ key: 'a', n: 1 })
    expect(await repairShard(harness.repairOptions())).to.equal(null)
    expect((await harness.journal.state()).messages).to.equal(0)
  })

  it('tells what it would do to an inbox that lost its tail, and changes nothing', async () => {
    await loseInbox()
    await expectLost()
    const before = await harness.lastSeqs()
    const { inbox, journal } = await examine(harness.repairOptions())
    expect(journal.fault).to.equal(null)
    expect(inbox).to.deep.include({ again: { packs: 3, items: 3 }, broken: { batches: 1, items: 1 } })
    // Six packs stand below the loss and four were lost. Three came, and a probe of the owner that found the loss.
    expect(inbox?.fillers).to.equal(1)
    expect((inbox?.named ?? 0) - (inbox?.proven ?? 0)).to.equal(4)
    expect(inbox?.fault).to.match(/^message \d+ is not what an owner saw there$/)
    expect(await harness.lastSeqs()).to.deep.equal(before)
  })

  it('loses nothing that came after the loss, repeats nothing that is proven, and gives no key two bodies', async () => {
    await loseInbox()
    const outstanding = harness.owners[0]!.sent.filter(({ body }) => /"b"|"g"/.test(body))
    await repairShard(harness.repairOptions())
    const owner = await untilSent([3, 4, 9, 10, 11, 20])
    // Proven to be over: a and the first half of c. Lost: 6, 7, 13, 21; the first three were delivered before.
    expect(numbersSent(owner)).to.deep.equal([3, 4, 9, 10, 11, 20])
    const keyOf = (numbers: number[], sent: { key: string; body: string }[]) =>
      sent.find(({ body }) => String(numbersOf(body)) === String(numbers))?.key
    expect(keyOf([3, 4], owner.sent)).to.equal(keyOf([3, 4], outstanding))
    // A batch that missed an item was sealed anew.
    expect(keyOf([20], owner.sent)).to.not.equal(keyOf([20, 21], outstanding))
    harness.expectOneBodyAKey()
    expect(owner.problems).to.deep.equal([])
    expect(await repairShard(harness.repairOptions())).to.equal(null)
    await owner.shard.abandon()
  })

  it('goes on without what somebody purged: sealed batches that miss items are given up, the others keep their keys', async () => {
    const { owner, firstSeq } = await purgeInbox()
    await expectLost()
    const { inbox, journal } = await examine(harness.repairOptions())
    expect(journal.fault).to.match(/^it may have lost its end/)
    expect(inbox).to.deep.include({
      fault: null,
      lostBelow: firstSeq + 2,
      fillers: 0,
      broken: { batches: 1, items: 1 },
    })
    await repairShard(harness.repairOptions())
    expect(await repairShard(harness.repairOptions())).to.equal(null)
    const next = await untilSent([3, 4, 5, 6])
    expect(numbersSent(next)).to.deep.equal([3, 4, 5, 6])
    const isOfB = ({ body }: { body: string }) => String(numbersOf(body)) === '4,5'
    expect(next.sent.find(isOfB)?.key).to.equal(owner.sent.find(isOfB)?.key)
    harness.expectOneBodyAKey()
    expect(next.problems).to.deep.equal([])
    await next.shard.abandon()
  })

  it('records a batch that Postgres has as a dead letter as dead, and does not send it', async () => {
    await loseInbox()
    const groupId = groupToken(buffer.uid, 'g')
    const records = await journalRecords(nats.broker, harness.shard)
    const seal = records.find(({ record }) => record.type === 'seal' && record.groupId === groupId)!
    const { customerId, projectId, bufferId, uid } = buffer
    await createDeadLetters(db).write(
      { shard: harness.shard, epoch: (await harness.lastSeqs()).journal },
      {
        dlqId: randomUUID(),
        bufferUid: uid,
        customerId,
        projectId,
        bufferId,
        groupId,
        groupKey: 'g',
        version: seal.seq,
        reason: 'max_retries_exceeded',
        lastError: '',
        lastStatusCode: 500,
        lastResponse: null,
        attempt: 0,
        itemCount: 2,
        messageIds: [],
        firstPayloadPreview: '',
        segment: 0,
        firstItemAt: 0,
        lastActivityAt: 0,
        payloadBytes: 1,
        body: Buffer.from('x'),
        bodySha256: Buffer.alloc(32),
        createdAt: 0,
      },
    )
    await repairShard(harness.repairOptions())
    const owner = await untilSent([3, 4, 9, 10, 11])
    expect(numbersSent(owner)).to.deep.equal([3, 4, 9, 10, 11])
    const dead = (await journalRecords(nats.broker, harness.shard)).filter(
      ({ record }) => record.type === 'dead',
    )
    expect(dead.map(({ record }) => record)).to.have.length(1)
    await owner.shard.abandon()
  })

  it('writes a journal anew that lost its tail: kept items stay, no key comes twice, counters stay exact', async () => {
    const housekeeping = { everyMs: 20, keepBytes: 1, keepRatio: 0.1 }
    const owner = await harness.own(['b'], { housekeeping })
    await harness.send({ key: 'c', n: 5, pad: 200 })
    for (let n = 30; n < 50; n++) await harness.send({ key: 'a', n, pad: 200 })
    await harness.send({ key: 'b', n: 3 }, { key: 'b', n: 4 })
    await harness.wrote('keep', 1)
    await harness.wrote('seal', 11)
    await harness.wrote('done', 10)
    const { journal } = await harness.lastSeqs()
    // Behind the backup: sealed, sent and counted under versions that the journal forgets.
    await harness.send({ key: 'd', n: 60 }, { key: 'd', n: 61 }, { key: 'd', n: 62 }, { key: 'd', n: 63 })
    await harness.wrote('done', 12)
    const counted = () => createProjection(db).position(harness.shard)
    await eventually(async () => expect(await counted()).to.be.above(journal))
    await owner.shard.abandon()
    await harness.lose('journal', journal)
    await expectLost()
    await expectLost()
    const findings = await examine(harness.repairOptions())
    expect(findings.journal.fault).to.match(/^it ends at \d+, Postgres/)
    expect(findings.inbox?.fault).to.equal(null)
    await repairShard(harness.repairOptions())
    expect((await harness.lastSeqs()).journal).to.be.above(findings.journal.known.claim.seq)
    const next = await untilSent([3, 4, 5, 60, 61, 62, 63])
    expect(numbersSent(next)).to.deep.equal([3, 4, 5, 60, 61, 62, 63])
    const former = new Set(owner.sent.filter(({ body }) => body.includes('"d"')).map(({ key }) => key))
    for (const { key, body } of next.sent) if (body.includes('"d"')) expect(former).to.not.include(key)
    harness.expectOneBodyAKey()
    expect(await repairShard(harness.repairOptions())).to.equal(null)
    await next.shard.abandon()
  })

  it('writes a journal anew that has other commits where Postgres knows some', async () => {
    const letters = createDeadLetters(db)
    const owner = await harness.own(['b'], SOON)
    await harness.send({ key: 'b', n: 3 }, { key: 'b', n: 4 })
    await harness.wrote('seal', 1)
    const { journal } = await harness.lastSeqs()
    await harness.send({ key: 'a', n: 1 }, { key: 'a', n: 2 })
    const counted = async () => (await letters.remembered(harness.shard)).counted.seq
    await eventually(async () => expect(await counted()).to.be.above(journal))
    await owner.shard.abandon()
    await harness.lose('journal', journal)
    for (let claim = 0; (await harness.lastSeqs()).journal <= (await counted()); claim++)
      await appendEpoch(harness.journal, {
        boot: randomUUID(),
        claim,
        clock: systemClock(),
        stopped: () => false,
      })
    const findings = await examine(harness.repairOptions())
    expect(findings.journal.fault).to.match(/^another commit stands at \d+, where Postgres knows one$/)
    await repairShard(harness.repairOptions())
    const next = await untilSent([3, 4, 1, 2])
    harness.expectOneBodyAKey()
    expect(await repairShard(harness.repairOptions())).to.equal(null)
    await next.shard.abandon()
  })

  it('writes a journal anew that lacks the commit of a snapshot', async () => {
    const kept = { everyMs: 20, purgeLagMs: 0, keepBytes: 1, keepRatio: 0.1, snapshotBytes: 200 }
    const owner = await harness.own(['b'], { housekeeping: { ...kept, syncLagMs: 600_000 } })
    await harness.send({ key: 'c', n: 5, pad: 200 })
    for (let n = 30; n < 40; n++) await harness.send({ key: 'a', n, pad: 200 })
    await harness.send({ key: 'b', n: 3 }, { key: 'b', n: 4 })
    await harness.wrote('keep', 1)
    await harness.wrote('done', 5)
    await eventually(async () => expect(await harness.snapshots()).to.have.length(1))
    await owner.shard.abandon()
    const [named] = await harness.snapshots()
    await harness.lose('journal', named! - 1)
    await expectLost()
    const { journal } = await examine(harness.repairOptions())
    expect(journal).to.include({ truncatedWithoutSnapshot: false })
    expect(journal.fault).to.include(`a snapshot names the commit ${named}`)
    await repairShard(harness.repairOptions())
    expect(await repairShard(harness.repairOptions())).to.equal(null)
    const next = await untilSent([3, 4, 5])
    harness.expectOneBodyAKey()
    await next.shard.abandon()
  })

  it('finds nothing at a shard whose archive lost its snapshots beside a whole journal', async () => {
    const owner = await harness.own(['b'], {
      housekeeping: { everyMs: 20, snapshotBytes: 200, syncLagMs: 600_000 },
    })
    for (let n = 30; n < 40; n++) await harness.send({ key: 'a', n, pad: 200 })
    await harness.send({ key: 'b', n: 3 }, { key: 'b', n: 4 })
    await harness.wrote('done', 5)
    await eventually(async () => expect(await harness.snapshots()).to.have.length(1))
    await owner.shard.abandon()
    await harness.archive.remove(SNAPSHOTS)
    expect(await repairShard(harness.repairOptions())).to.equal(null)
    const next = await untilSent([3, 4])
    harness.expectOneBodyAKey()
    await next.shard.abandon()
  })

  it('counts batches that were settled and not counted yet once, in a journal written anew', async () => {
    const delivered = async () => {
      const [row] = await db`SELECT coalesce(sum(delivered), 0)::int AS sum FROM delivery_days`
      return row?.sum as number
    }
    let before: number
    let ends = 0
    // Each second the owner counts: now and then the batch and its end have one of them in between.
    do {
      before = await delivered()
      const owner = await harness.own([])
      await harness.send({ key: 'a', n: 1 }, { key: 'a', n: 2 })
      await harness.wrote('done', ++ends)
      await owner.shard.abandon()
    } while ((await delivered()) !== before)
    // Known to Postgres as lost: only a journal above it may go on.
    await createDeadLetters(db).raiseEpoch({ shard: harness.shard, epoch: Date.now() * 1_000 + 60_000_000 })
    await expectLost()
    await repairShard(harness.repairOptions())
    const next = await harness.own([], SOON)
    await eventually(async () => expect(await delivered()).to.equal(before + 1))
    expect(next.sent).to.deep.equal([])
    await next.shard.abandon()
  })

  it('repairs both logs of one backup', async () => {
    const owner = await harness.own(['b'])
    await harness.send({ key: 'a', n: 1 }, { key: 'a', n: 2 }, { key: 'b', n: 3 }, { key: 'b', n: 4 })
    await harness.wrote('done', 1)
    await harness.wrote('seal', 2)
    const { inbox, journal } = await harness.lastSeqs()
    await harness.send({ key: 'a', n: 5 }, { key: 'a', n: 6 })
    await harness.wrote('done', 2)
    const counted = () => createProjection(db).position(harness.shard)
    await eventually(async () => expect(await counted()).to.be.above(journal))
    await owner.shard.abandon()
    await harness.lose('inbox', inbox)
    await harness.lose('journal', journal)
    await harness.send({ key: 'e', n: 9 })
    await expectLost()
    await repairShard(harness.repairOptions())
    const next = await untilSent([3, 4, 9])
    expect(numbersSent(next)).to.deep.equal([3, 4, 9])
    harness.expectOneBodyAKey()
    await next.shard.abandon()
  })

  it('renews a journal at will: after a restore of everything no version comes twice', async () => {
    const owner = await harness.own(['b'])
    await harness.send({ key: 'b', n: 3 }, { key: 'b', n: 4 })
    await harness.wrote('seal', 1)
    const [backup, row] = [
      await harness.lastSeqs(),
      await db`SELECT * FROM projections WHERE shard = ${harness.shard}`,
    ]
    await harness.send({ key: 'd', n: 60 }, { key: 'd', n: 61 })
    await harness.wrote('done', 1)
    await owner.shard.abandon()
    await harness.lose('inbox', backup.inbox)
    await harness.lose('journal', backup.journal)
    // Postgres of the same backup: it has counted nothing that the journal does not hold.
    await db`DELETE FROM projections WHERE shard = ${harness.shard}`
    for (const each of row) await db`INSERT INTO projections ${db(each)}`
    expect(needsRepair(await examine(harness.repairOptions()))).to.equal(false)
    const renewed = await repairShard({ ...harness.repairOptions(), renew: true })
    expect(renewed?.journal.fault).to.match(/as its caller says$/)
    await harness.send({ key: 'd', n: 70 })
    const next = await untilSent([3, 4, 70])
    harness.expectOneBodyAKey()
    const keyOf = (sent: Owner['sent'], group: string) =>
      sent.find(({ body }) => body.includes(`"k":"${group}"`))?.key
    // What was sealed keeps its name, and what comes is above all that was ever used.
    expect(keyOf(next.sent, 'b')).to.equal(keyOf(owner.sent, 'b'))
    const version = (key = '') => Number(/:v(\d+)$/.exec(key)?.[1])
    expect(version(keyOf(next.sent, 'd'))).to.be.above(version(keyOf(owner.sent, 'd')) + 1_000)
    await next.shard.abandon()
  })

  it('cannot bring back a journal that somebody emptied', async () => {
    const owner = await harness.own([])
    await harness.send({ key: 'a', n: 1 }, { key: 'a', n: 2 })
    await harness.wrote('done', 1)
    await owner.shard.abandon()
    const options = harness.repairOptions()
    await options.copies.emptyJournal(harness.shard, (await harness.lastSeqs()).journal + 1)
    const failure = await repairShard(options).catch((error: Error) => error)
    expect(failure).to.be.instanceOf(JournalGoneError)
    await expectLost()
  })

  describe('interrupted at any step', () => {
    /** Runs the repair again and again, each time one write further, claims in between; resolves when one went through. */
    async function repairBitByBit(): Promise<number> {
      for (let runs = 1; ; runs++) {
        const options = interrupted(harness.repairOptions(), runs, runs % 2 === 0)
        const end = await repairShard(options).catch((error: unknown) => error)
        if (!(end instanceof Interruption)) {
          if (end instanceof Error) throw end
          return runs
        }
        if (needsRepair(await examine(harness.repairOptions()))) await expectLost()
      }
    }

    it('an inbox comes out the same', async () => {
      await loseInbox()
      expect(await repairBitByBit()).to.be.above(3)
      const owner = await untilSent([3, 4, 9, 10, 11, 20])
      expect(numbersSent(owner)).to.deep.equal([3, 4, 9, 10, 11, 20])
      harness.expectOneBodyAKey()
      await owner.shard.abandon()
    })

    it('an inbox that somebody purged comes out the same, with its journal', async () => {
      await purgeInbox()
      expect(await repairBitByBit()).to.be.above(3)
      const owner = await untilSent([3, 4, 5, 6])
      expect(numbersSent(owner)).to.deep.equal([3, 4, 5, 6])
      harness.expectOneBodyAKey()
      await owner.shard.abandon()
    })

    it('a journal comes out the same', async () => {
      const housekeeping = { everyMs: 20, keepBytes: 1, keepRatio: 0.1 }
      const owner = await harness.own(['b'], { housekeeping })
      await harness.send({ key: 'c', n: 5, pad: 200 })
      for (let n = 30; n < 40; n++) await harness.send({ key: 'a', n, pad: 200 })
      await harness.send({ key: 'b', n: 3 }, { key: 'b', n: 4 })
      await harness.wrote('keep', 1)
      await harness.wrote('seal', 6)
      await harness.wrote('done', 5)
      await owner.shard.abandon()
      await createDeadLetters(db).raiseEpoch({ shard: harness.shard, epoch: Date.now() * 1_000 + 60_000_000 })
      expect(await repairBitByBit()).to.be.above(3)
      const next = await untilSent([3, 4, 5])
      expect(numbersSent(next)).to.deep.equal([3, 4, 5])
      harness.expectOneBodyAKey()
      await next.shard.abandon()
    })
  })
})
