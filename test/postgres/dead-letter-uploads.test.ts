/** Large dead letters in Postgres: stored and read in parts (docs/architecture/protocol.md, "Dead letters"). */
import { createHash, randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { connect, type Database, FOREIGN_KEY_VIOLATION } from '../../internal/postgres/connection.ts'
import {
  BodyNotUploadedError,
  INLINE_BYTES,
  PART_BYTES,
} from '../../internal/postgres/dead-letter-uploads.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { createDeadLetterStore } from '../../internal/postgres/dlq-items.ts'
import { createExpiredDeadLetters } from '../../internal/postgres/expired-dead-letters.ts'
import { type DeadBatch, type DeadLetters, FencedError } from '../../internal/shard/ports.ts'
import { deadBatch } from '../support/dead-batch.ts'
import { eventually } from '../support/eventually.ts'
import { bufferState, insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'

const LARGE = 8 * PART_BYTES + 7
/** A part takes a third of a second: long enough to come between two of them. */
const NARROW = 1_000_000

describe('postgres: large dead letters', function () {
  this.timeout(60_000)
  let url: string
  let db: Database
  let letters: DeadLetters
  let buffer: TestBuffer
  let shard = 0

  before(async () => {
    url = await freshDatabase()
    db = connect(url)
    letters = createDeadLetters(db)
  })
  after(() => db.end())

  beforeEach(async () => {
    await db`TRUNCATE dlq_bodies, dlq_items, dlq_tombstones CASCADE`
    buffer = await insertBuffer(db, await insertCustomer(db))
    shard++
    await letters.raiseEpoch({ shard, epoch: 10 })
  })

  const fence = (epoch = 10) => ({ shard, epoch })
  const large = (bytes = LARGE, given: Partial<DeadBatch> = {}) =>
    deadBatch(buffer, { body: randomBytes(bytes), ...given })
  const store = async (batch: DeadBatch) => {
    await letters.upload(fence(), batch)
    expect((await letters.write(fence(), batch)).outcome).to.equal('stored')
  }
  const bodyOf = ({ dlqId }: DeadBatch) => createDeadLetterStore(db).body(dlqId)
  const failure = (running: Promise<unknown>) =>
    running.then(
      () => undefined,
      (error: unknown) => error,
    )
  /** With the transaction that stored each. */
  const parts = async () => [
    ...(await db<{ part: number; by: string }[]>`
      SELECT part, xmin::text AS by FROM dlq_body_parts WHERE content = 'body' ORDER BY part`),
  ]
  const uploads = async () => (await db`SELECT FROM dlq_bodies`).length

  it('give back the same bytes, whatever their size', async () => {
    const sizes = [0, 1, INLINE_BYTES, INLINE_BYTES + 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES, LARGE]
    for (const bytes of sizes) {
      const batch = large(bytes)
      await store(batch)
      expect(Buffer.compare((await bodyOf(batch))!, batch.body), `${bytes}`).to.equal(0)
    }
    // Only those beyond the limit are in parts.
    expect(await uploads()).to.equal(5)
  })

  it('keep all message ids, however many and odd', async () => {
    const odd = '\u0000\u0001 "\u2028 \ud83d\ude00 \ud800 \\'
    const messageIds = Array.from({ length: 10_000 }, (_, n) => odd.repeat(20) + n)
    const batch = large(LARGE, { messageIds })
    await store(batch)
    const item = await createDeadLetterStore(db).find(batch.dlqId)
    expect(item!.payloadSummary.messageIds).to.deep.equal(messageIds)
    expect(item!.payloadStored).to.equal(true)
  })

  it('that a former version stored in one piece are read in slices', async () => {
    const batch = deadBatch(buffer)
    await store(batch)
    const body = randomBytes(LARGE)
    const sha256 = createHash('sha256').update(body).digest()
    await db`UPDATE dlq_items SET body = ${body}, body_sha256 = ${sha256} WHERE dlq_id = ${batch.dlqId}`
    expect(Buffer.compare((await bodyOf(batch))!, body)).to.equal(0)
  })

  it('of which something is missing are not available', async () => {
    for (const part of [0, 3, 8]) {
      const batch = large()
      await store(batch)
      await db`DELETE FROM dlq_body_parts p USING dlq_items i
        WHERE i.dlq_id = ${batch.dlqId} AND p.body_id = i.body_id AND content = 'body' AND part = ${part}`
      expect(await bodyOf(batch), `${part}`).to.equal(null)
    }
    expect(await createDeadLetterStore(db).body('nobody')).to.equal(undefined)
  })

  it('are not written, and not counted, before they are uploaded', async () => {
    const batch = large()
    expect(await failure(letters.write(fence(), batch))).to.be.instanceOf(BodyNotUploadedError)
    expect(await bodyOf(batch)).to.equal(undefined)
    expect((await bufferState(db, buffer.uid)).count).to.equal(0)
  })

  it('are known when they are stored twice, and yield to the tombstone of a removed one', async () => {
    const batch = large()
    await store(batch)
    await letters.upload(fence(), batch)
    expect((await letters.write(fence(), { ...batch, dlqId: 'again' })).outcome).to.equal('known')
    await createDeadLetterStore(db).remove(batch.dlqId)
    await letters.upload(fence(), batch)
    expect((await letters.write(fence(), batch)).outcome).to.equal('known')
    expect([await uploads(), await bodyOf(batch)]).to.deep.equal([0, undefined])
    expect((await bufferState(db, buffer.uid)).count).to.equal(1)
  })

  it('whose parts do not have their hash are uploaded anew', async () => {
    const batch = large()
    await letters.upload(fence(), batch)
    await db`UPDATE dlq_bodies SET complete = false`
    await db`UPDATE dlq_body_parts SET data = 'other' WHERE part = 2`
    expect(await failure(letters.upload(fence(), batch))).to.be.instanceOf(BodyNotUploadedError)
    await store(batch)
    expect(Buffer.compare((await bodyOf(batch))!, batch.body)).to.equal(0)
  })

  it('uploaded by several at once are stored once', async () => {
    const batch = large()
    const others = [1, 2].map(() => createDeadLetters(db))
    await Promise.all([letters, ...others].map((each) => each.upload(fence(), batch)))
    await store(batch)
    expect(await parts()).to.have.length(9)
    expect(Buffer.compare((await bodyOf(batch))!, batch.body)).to.equal(0)
  })

  it('of a stale owner are refused though all their parts are there; its successor changes none of them', async () => {
    const batch = large()
    await letters.upload(fence(), batch)
    const there = await parts()
    await letters.raiseEpoch(fence(11))
    expect(await failure(letters.write(fence(), batch))).to.be.instanceOf(FencedError)
    expect(await failure(letters.upload(fence(), large()))).to.be.instanceOf(FencedError)
    expect([await bodyOf(batch), (await bufferState(db, buffer.uid)).count]).to.deep.equal([undefined, 0])
    await letters.upload(fence(11), batch)
    expect(await parts()).to.deep.equal(there)
    expect((await letters.write(fence(11), batch)).outcome).to.equal('stored')
  })

  describe('over a line that is narrow', () => {
    let line: TcpProxy
    let narrow: Database
    let there: DeadLetters
    let sent: number

    beforeEach(async () => {
      line = await TcpProxy.to(Number(new URL(url).port), () => ({
        up: (chunk) => {
          sent += chunk.length
          return chunk
        },
        down: (chunk) => chunk,
      }))
      narrow = connect(line.through(url), { max: 2 })
      there = createDeadLetters(narrow)
      line.throttle(NARROW)
    })
    afterEach(async () => {
      line.heal()
      await narrow.end({ timeout: 1 })
      await line.close()
    })

    const untilParts = (count: number) =>
      eventually(async () => expect((await parts()).length).to.be.at.least(count))

    it('go on where they broke off', async () => {
      const batch = large()
      const broken = failure(there.upload(fence(), batch))
      await untilParts(2)
      line.reset()
      expect(await broken).to.be.an('error')
      const before = await parts()
      expect(before.length).to.be.within(2, 7)
      line.heal()
      sent = 0
      await there.upload(fence(), batch)
      const now = await parts()
      expect(now).to.have.length(9)
      expect(now.slice(0, before.length)).to.deep.equal(before)
      // Base64 is a third longer; the last part has a few bytes only.
      expect(sent).to.be.below((9 - before.length) * PART_BYTES * 1.5)
      sent = 0
      await there.upload(fence(), batch)
      expect(sent).to.be.below(PART_BYTES)
    })

    it('are read, also those of a former version', async () => {
      // In one statement and as hex it would take six seconds, and a statement has four.
      const batch = large(12 * PART_BYTES)
      await store(batch)
      const throughLine = async () => (await createDeadLetterStore(narrow).body(batch.dlqId))!
      expect(Buffer.compare(await throughLine(), batch.body)).to.equal(0)
      await db`UPDATE dlq_items SET body_id = NULL, body = ${batch.body} WHERE dlq_id = ${batch.dlqId}`
      expect(Buffer.compare(await throughLine(), batch.body)).to.equal(0)
    })

    it('hold up no successor, and end when there is one', async () => {
      const batch = large()
      const replaced = failure(there.upload(fence(), batch))
      await untilParts(1)
      await letters.raiseEpoch(fence(11))
      expect(await replaced).to.be.instanceOf(FencedError)
      expect((await parts()).length).to.be.below(9)
    })
  })

  describe('that nobody wrote', () => {
    const remove = () => createExpiredDeadLetters(db).removeAbandoned(200)
    const anHourPasses = () => db`UPDATE dlq_bodies SET touched_at = touched_at - interval '61 minutes'`

    it('go an hour after their last part, and come again with their owner', async () => {
      const [left, written] = [large(), large()]
      await letters.upload(fence(), left)
      await store(written)
      expect(await remove()).to.equal(0)
      await anHourPasses()
      expect(await remove()).to.equal(1)
      expect([await uploads(), (await parts()).length]).to.deep.equal([1, 9])
      expect(Buffer.compare((await bodyOf(written))!, written.body)).to.equal(0)
      await store(left)
    })

    it('stay while their owner is about to write them', async () => {
      const batch = large()
      await letters.upload(fence(), batch)
      await anHourPasses()
      const blocking = Promise.withResolvers<void>()
      const blocked = Promise.withResolvers<void>()
      // The row of the buffer, which the owner's transaction comes to last.
      const holder = db.begin(async (transaction) => {
        await transaction`SELECT FROM buffers WHERE uid = ${buffer.uid} FOR UPDATE`
        blocked.resolve()
        await blocking.promise
      })
      await Promise.race([blocked.promise, holder])
      const writing = letters.write(fence(), batch)
      await eventually(
        async () =>
          (
            await db`SELECT FROM pg_stat_activity
              WHERE datname = current_database() AND wait_event_type = 'Lock'`
          ).length > 0,
      )
      expect(await remove()).to.equal(0)
      blocking.resolve()
      await holder
      expect((await writing).outcome).to.equal('stored')
      expect(await remove()).to.equal(0)
    })
  })

  it('that are removed while they are written again come to no deadlock, and do not come back', async () => {
    const batch = large()
    await store(batch)
    const waiting = async (sessions: number) =>
      expect(
        await db`SELECT FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      ).to.have.length(sessions)
    const tombstone = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    // The removal has locked the dead letter and comes to its tombstone; its upload is next.
    const holder = db.begin(async (transaction) => {
      await transaction`INSERT INTO dlq_tombstones VALUES (${batch.groupId}, ${batch.version})`
      tombstone.resolve()
      await gate.promise
    })
    await Promise.race([tombstone.promise, holder])
    const removing = createDeadLetterStore(db).remove(batch.dlqId)
    await eventually(() => waiting(1))
    const writing = failure(letters.write(fence(), { ...batch, dlqId: 'again' }))
    await eventually(() => waiting(2))
    gate.resolve()
    await holder
    expect(await removing).to.equal(true)
    // It finds no upload to refer to; a deadlock has another code.
    expect(await writing).to.include({ code: FOREIGN_KEY_VIOLATION })
    await letters.upload(fence(), batch)
    expect((await letters.write(fence(), { ...batch, dlqId: 'again' })).outcome).to.equal('known')
    expect([await uploads(), await bodyOf(batch)]).to.deep.equal([0, undefined])
  })

  it('leave nothing behind when they are removed', async () => {
    const batches = [large(), large(), large()]
    for (const batch of batches) await store(batch)
    await createDeadLetterStore(db).remove(batches[0]!.dlqId)
    expect(await uploads()).to.equal(2)
    expect(await createExpiredDeadLetters(db).removeBeyond(0, 200)).to.equal(2)
    expect([await uploads(), await parts()]).to.deep.equal([0, []])
  })
})
