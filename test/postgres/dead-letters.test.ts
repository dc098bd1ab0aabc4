import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { connect, type Database, type Transaction } from '../../internal/postgres/connection.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { createDeadLetterStore } from '../../internal/postgres/dlq-items.ts'
import { fencedTransaction, raiseEpoch } from '../../internal/postgres/shards.ts'
import { NO_COMMIT } from '../../internal/shard/journal/commit-name.ts'
import { BodyConflictError, type DeadLetters, FencedError } from '../../internal/shard/ports.ts'
import { commitAt } from '../support/commit-names.ts'
import { deadBatch } from '../support/dead-batch.ts'
import { eventually } from '../support/eventually.ts'
import { bufferState, insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

describe('postgres: the fence and the dead letter queue', () => {
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
    buffer = await insertBuffer(db, await insertCustomer(db))
    shard++
    await letters.raiseEpoch({ shard, epoch: 10 })
  })

  const fence = (epoch = 10) => ({ shard, epoch })
  const failure = (running: Promise<unknown>) =>
    running.then(
      () => undefined,
      (error: unknown) => error,
    )
  const count = async () => (await bufferState(db, buffer.uid)).count
  const rowsOf = (groupId: string) => db`SELECT recorded FROM dlq_items WHERE group_id = ${groupId}`
  const tombstonesOf = (groupId: string) => db`SELECT version FROM dlq_tombstones WHERE group_id = ${groupId}`

  /** Whether a session waits for a lock of another: the race under test has come to its point. */
  const somebodyWaits = async () =>
    (await db`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
      .length > 0

  /**
   * A transaction that has made its change and waits: `made` resolves then. The server's list of locks would
   * tell too early: a table is locked while its statement is still parsed.
   */
  const holding = (change: (transaction: Transaction) => Promise<unknown>) => {
    const made = Promise.withResolvers<void>()
    const gate = Promise.withResolvers<void>()
    const ended = db.begin(async (transaction) => {
      await change(transaction)
      made.resolve()
      await gate.promise
    })
    return {
      made: Promise.race([made.promise, ended]),
      commit: () => {
        gate.resolve()
        return ended
      },
    }
  }

  describe('fence', () => {
    it('raises the epoch and never lowers it', async () => {
      await letters.raiseEpoch(fence(10))
      await letters.raiseEpoch(fence(11))
      expect(await failure(letters.raiseEpoch(fence(10)))).to.be.instanceOf(FencedError)
    })

    it('replaces the known claim, and of two that know the same one only one does', async () => {
      const claims = ['a', 'b'].map((identity) => ({ ...fence(11), identity }))
      const known = commitAt(10)
      const other = { seq: 10, identity: 'other' }
      for (const wrong of [commitAt(9), other, NO_COMMIT])
        expect(await letters.replaceEpoch(claims[0]!, wrong)).to.equal(false)
      const replaced = await Promise.all(claims.map((claim) => letters.replaceEpoch(claim, known)))
      expect(replaced.toSorted()).to.deep.equal([false, true])
      const { identity } = claims[replaced.indexOf(true)]!
      expect(await letters.remembered(shard)).to.deep.equal({
        claim: { seq: 11, identity },
        counted: NO_COMMIT,
      })
    })

    it('an owner writes nothing where another claim has its epoch', async () => {
      const owner = { ...fence(11), identity: 'a' }
      await letters.raiseEpoch(owner)
      await letters.known(owner, [{ groupId: 'g', version: 1 }])
      const other = { ...owner, identity: 'b' }
      expect(await failure(letters.raiseEpoch(other))).to.be.instanceOf(FencedError)
      expect(await failure(letters.write(other, deadBatch(buffer)))).to.be.instanceOf(FencedError)
      expect((await letters.remembered(shard)).claim).to.deep.equal({ seq: 11, identity: 'a' })
    })

    it('a stale owner writes nothing', async () => {
      await letters.raiseEpoch(fence(11))
      const batch = deadBatch(buffer)
      const name = { groupId: batch.groupId, version: batch.version }
      for (const write of [
        letters.write(fence(10), batch),
        letters.known(fence(10), [name]),
        letters.forgetTombstones(fence(10), [name]),
      ]) {
        expect(await failure(write)).to.be.instanceOf(FencedError)
      }
      expect(await rowsOf(batch.groupId)).to.have.length(0)
      expect(await count()).to.equal(0)
    })

    it('an owner that did not raise its epoch yet raises it by writing', async () => {
      await letters.write(fence(12), deadBatch(buffer))
      expect(await failure(letters.write(fence(11), deadBatch(buffer)))).to.be.instanceOf(FencedError)
    })

    it('a raise waits for the write under way, and sees what it wrote', async () => {
      const batch = deadBatch(buffer)
      const { promise: gate, resolve: finish } = Promise.withResolvers<void>()
      const { promise: fenceHeld, resolve: hold } = Promise.withResolvers<void>()
      const writing = fencedTransaction(db, fence(10), async (transaction) => {
        hold()
        await gate
        await transaction`INSERT INTO dlq_tombstones (group_id, version) VALUES (${batch.groupId}, 1)`
      })
      await Promise.race([fenceHeld, writing])
      let raised = false
      const raising = raiseEpoch(db, fence(11)).then(() => {
        raised = true
      })
      await eventually(somebodyWaits)
      expect(raised).to.equal(false)
      finish()
      await Promise.all([writing, raising])
      expect(await letters.known(fence(11), [{ groupId: batch.groupId, version: 1 }])).to.have.length(1)
    })

    it('a transaction that began before the raise, and comes to the fence after it, loses', async () => {
      const raising = holding(
        (transaction) => transaction`UPDATE shards SET epoch = 11 WHERE shard = ${shard}`,
      )
      const batch = deadBatch(buffer)
      await raising.made
      const stale = failure(letters.write(fence(10), batch))
      await eventually(somebodyWaits)
      await raising.commit()
      expect(await stale).to.be.instanceOf(FencedError)
      expect(await rowsOf(batch.groupId)).to.have.length(0)
    })

    it('an owner that stops in the middle of a transaction loses its lock', async function () {
      this.timeout(120_000)
      // Without the bound of the connection: the fence brings its own.
      const own = connect(url, { idleInTransactionTimeoutMs: 0 })
      const { promise: fenceHeld, resolve: hold } = Promise.withResolvers<void>()
      const stopped = failure(
        fencedTransaction(own, fence(10), () => {
          hold()
          return new Promise(() => {})
        }),
      )
      await Promise.race([fenceHeld, stopped])
      await eventually(async () => (await failure(raiseEpoch(db, fence(11)))) === undefined)
      expect(await stopped).to.be.an('error')
      await own.end({ timeout: 0 })
    })
  })

  describe('write', () => {
    it('stores every field and the exact bytes', async () => {
      const body = Buffer.from([0, 1, 0x5c, 0x78, 255, 0])
      const lastResponse = 'not today'
      const batch = deadBatch(buffer, { body, version: 2 ** 52, reason: 'non_retryable_error', lastResponse })
      expect(await letters.write(fence(), batch)).to.deep.equal({
        outcome: 'stored',
        dlqId: batch.dlqId,
        paused: false,
      })
      const store = createDeadLetterStore(db)
      expect(await store.find(batch.dlqId)).to.deep.equal({
        dlqId: batch.dlqId,
        customerId: buffer.customerId,
        projectId: buffer.projectId,
        bufferId: buffer.bufferId,
        groupId: batch.groupId,
        groupKey: 'key',
        reason: 'non_retryable_error',
        lastError: 'HTTP 500',
        lastStatusCode: 500,
        lastResponse,
        attempt: 2,
        itemCount: 1,
        payloadSummary: { messageIds: ['message-1'], firstPayloadPreview: '{"a":1}' },
        payloadStored: true,
        batch: {
          groupHash: batch.groupId,
          segment: 0,
          firstItemAt: 1_700_000_000_001,
          lastActivityAt: 1_700_000_000_002,
          groupVersion: 2 ** 52,
          payloadBytes: 7,
        },
        retryCount: 0,
        lastRetryAt: null,
        createdAt: 1_700_000_000_003,
      })
      expect(Buffer.from((await store.body(batch.dlqId)) ?? [])).to.deep.equal(body)
    })

    it('takes whatever text a sender may choose', async () => {
      const odd = '\u0000 \\u0000 "\u2028 \ud83d\ude00 \ud800 \\'
      const batch = deadBatch(buffer, {
        groupKey: odd,
        messageIds: [odd, ''],
        firstPayloadPreview: odd,
        lastError: 'a\u0000b',
      })
      await letters.write(fence(), batch)
      const item = await createDeadLetterStore(db).find(batch.dlqId)
      expect(item?.groupKey).to.equal(odd)
      expect(item?.payloadSummary).to.deep.equal({ messageIds: [odd, ''], firstPayloadPreview: odd })
      expect(item?.lastError).to.equal('a\ufffdb')
    })

    it('the same batch twice counts once', async () => {
      const batch = deadBatch(buffer)
      await letters.write(fence(), batch)
      const again = { ...batch, dlqId: 'another' }
      expect(await letters.write(fence(), again)).to.deep.equal({
        outcome: 'known',
        dlqId: batch.dlqId,
        paused: false,
      })
      expect(await count()).to.equal(1)
      expect(await rowsOf(batch.groupId)).to.have.length(1)
    })

    it('the same batch at once from many counts once', async () => {
      const batch = deadBatch(buffer)
      const outcomes = await Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          letters.write(fence(), { ...batch, dlqId: `${batch.dlqId}-${i}` }),
        ),
      )
      expect(outcomes.filter((one) => one.outcome === 'stored')).to.have.length(1)
      expect(await count()).to.equal(1)
    })

    it('refuses another body under a known name, and writes nothing', async () => {
      const batch = deadBatch(buffer)
      await letters.write(fence(), batch)
      const other = deadBatch(buffer, { groupId: batch.groupId, version: batch.version })
      expect(await failure(letters.write(fence(), other))).to.be.instanceOf(BodyConflictError)
      expect(await count()).to.equal(1)
    })

    it('disables the buffer at its threshold, once, and tells its nodes', async () => {
      const before = await bufferState(db, buffer.uid)
      const paused = []
      for (let i = 0; i < 4; i++) paused.push((await letters.write(fence(), deadBatch(buffer))).paused)
      expect(paused).to.deep.equal([false, false, true, false])
      expect(await bufferState(db, buffer.uid)).to.deep.equal({
        enabled: false,
        count: 4,
        version: before.version + 1,
      })
    })

    it('pauses once when the threshold is passed by many at once', async () => {
      const all = await Promise.all(
        Array.from({ length: 8 }, () => letters.write(fence(), deadBatch(buffer))),
      )
      expect(all.filter((one) => one.paused)).to.have.length(1)
      expect(await count()).to.equal(8)
    })

    it('does not pause a deleted buffer', async () => {
      await db`UPDATE buffers SET deleted_at = now(), deleted_state = 'enabled' WHERE uid = ${buffer.uid}`
      for (let i = 0; i < 3; i++) {
        expect(await letters.write(fence(), deadBatch(buffer))).to.include({
          outcome: 'stored',
          paused: false,
        })
      }
      expect((await bufferState(db, buffer.uid)).enabled).to.equal(true)
    })
  })

  describe('removal', () => {
    it('leaves a tombstone until the batch is recorded dead: nothing comes back', async () => {
      const batch = deadBatch(buffer)
      const name = { groupId: batch.groupId, version: batch.version }
      const other = { groupId: batch.groupId, version: batch.version + 1 }
      expect(await letters.known(fence(), [name])).to.deep.equal([])
      await letters.write(fence(), batch)
      expect(await letters.known(fence(), [other, name])).to.deep.equal([name])
      expect(await createDeadLetterStore(db).remove(batch.dlqId)).to.equal(true)
      expect(await letters.known(fence(), [other, name])).to.deep.equal([name])
      expect(await letters.write(fence(), batch)).to.deep.equal({
        outcome: 'known',
        dlqId: null,
        paused: false,
      })
      expect(await rowsOf(batch.groupId)).to.have.length(0)
      expect(await count()).to.equal(1)
      await letters.forgetTombstones(fence(), [other, name])
      expect(await letters.known(fence(), [name])).to.deep.equal([])
    })

    it('of a batch that is recorded dead leaves no tombstone', async () => {
      const batch = deadBatch(buffer)
      await letters.write(fence(), batch)
      await letters.forgetTombstones(fence(), [{ groupId: batch.groupId, version: batch.version }])
      expect(await createDeadLetterStore(db).remove(batch.dlqId)).to.equal(true)
      expect(await tombstonesOf(batch.groupId)).to.have.length(0)
    })

    it('racing a second write brings nothing back and counts once', async () => {
      const batch = deadBatch(buffer)
      await letters.write(fence(), batch)
      const removing = holding(
        (transaction) => transaction`DELETE FROM dlq_items WHERE dlq_id = ${batch.dlqId}`,
      )
      await removing.made
      const writing = letters.write(fence(), { ...batch, dlqId: `${batch.dlqId}-2` })
      await eventually(somebodyWaits)
      await removing.commit()
      expect(await writing).to.deep.equal({ outcome: 'known', dlqId: null, paused: false })
      expect(await rowsOf(batch.groupId)).to.have.length(0)
      expect(await count()).to.equal(1)
    })

    it('racing the record of its death leaves no tombstone behind', async () => {
      const batch = deadBatch(buffer)
      await letters.write(fence(), batch)
      const removing = holding(
        (transaction) => transaction`DELETE FROM dlq_items WHERE dlq_id = ${batch.dlqId}`,
      )
      await removing.made
      const forgetting = letters.forgetTombstones(fence(), [
        { groupId: batch.groupId, version: batch.version },
      ])
      await eventually(somebodyWaits)
      await Promise.all([removing.commit(), forgetting])
      expect(await tombstonesOf(batch.groupId)).to.have.length(0)
    })
  })
})
