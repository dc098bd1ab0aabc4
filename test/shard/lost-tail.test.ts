/**
 * A broker that does not have what a shard has seen or written: the shard stops in one line
 * (docs/architecture/protocol.md, "Lost tail").
 */
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, beforeEach, describe, it } from 'mocha'
import type { StreamConfig } from 'nats'
import { StreamApi } from '../../internal/nats/streams/stream-api.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { createProjection } from '../../internal/postgres/projection.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { Broker, LogState } from '../../internal/shard/broker.ts'
import { raiseEpoch } from '../../internal/shard/claim/epoch.ts'
import { appendEpoch } from '../../internal/shard/claim/takeover.ts'
import { commitName } from '../../internal/shard/journal/commit-name.ts'
import { LostTailError } from '../../internal/shard/lost-tail.ts'
import { FencedError } from '../../internal/shard/ports.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase, natsAccount, ownNats } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { lackingMessage, silentJournals, staleJournals } from './hindered-brokers.ts'
import { createNode, createOwner, ingest, journalRecords, numbersOf } from './real-owner.ts'
import { loseAbove } from './repair/loss.ts'

const OTHER_BOOT = '00000000-0000-4000-8000-000000000001'

describe('a broker that lost its tail', function () {
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

  async function brokerOf(url: string, shards = 1): Promise<TestBroker> {
    const nats = await brokerAt(url, shards)
    ends.push(() => nats.close())
    return nats
  }

  /** A poisoned shard elsewhere has failed and was claimed again: by then one that is lost would have been, too. */
  async function quarantinedTwice(): Promise<void> {
    const { broker } = await brokerOf((await natsAccount()).url)
    // A database of its own: there, too, it is another shard 0.
    const otherDb = connect(await freshDatabase(), { max: 4 })
    ends.push(() => otherDb.end({ timeout: 2 }))
    const { node, problems } = createNode({ broker, db: otherDb, buffer }, 1)
    ends.push(() => node.stop(1_000))
    const poison = { subject: 'items.0.mixed', msgId: 'poison', timeoutMs: 5_000 }
    await broker.inbox(0).append(Buffer.from('no pack'), poison)
    await node.start()
    await eventually(() =>
      expect(problems.filter((problem) => problem.includes('quarantined')).length).to.be.at.least(2),
    )
  }

  const letters = () => createDeadLetters(db)

  const wrote = (broker: Broker, type: string, count = 1) =>
    eventually(async () => {
      const records = await journalRecords(broker)
      expect(records.filter(({ record }) => record.type === type).length).to.be.at.least(count)
    })

  it('stops a claim when the inbox ends before what the journal names', async () => {
    const { broker, connection } = await brokerOf((await natsAccount()).url)
    const owner = createOwner({ broker, db, buffer, housekeeping: { everyMs: 60_000 } })
    await owner.shard.start()
    const first = await ingest(broker, buffer, [{ key: 'a', n: 1 }])
    await ingest(broker, buffer, [{ key: 'a', n: 2 }])
    await wrote(broker, 'done')
    await owner.shard.abandon()
    await loseAbove(connection, broker.inbox(0), { stream: 'INBOX_0', to: first })
    const next = createOwner({ broker, db, buffer })
    const error = await next.shard.start().catch((reason: Error) => reason)
    expect(error).to.be.instanceOf(LostTailError)
    expect((error as Error).message).to.match(
      /^shard 0: the broker lost messages \(the inbox ends at \d+, an owner saw \d+\): .*runbooks\.md$/,
    )
    expect(next.sent).to.deep.equal([])
  })

  it('stops a claim when somebody purged what is not over', async () => {
    const never = { maxItems: 100, idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 }
    for (const housekeeping of [{ everyMs: 20 }, { everyMs: 60_000 }]) {
      const { broker, connection } = await brokerOf((await natsAccount()).url)
      const owner = createOwner({ broker, db, buffer, housekeeping, batch: never })
      await owner.shard.start()
      await ingest(broker, buffer, [{ key: 'a', n: 1 }])
      const second = await ingest(broker, buffer, [{ key: 'a', n: 2 }])
      await eventually(() => owner.gauges.bufferedItems === 2)
      await owner.shard.stop(5_000)
      const manager = await connection.nats.jetstreamManager()
      await manager.streams.purge('INBOX_0', { seq: second })
      const next = createOwner({ broker, db, buffer, batch: never })
      const error = await next.shard.start().catch((reason: Error) => reason)
      expect(error).to.be.instanceOf(LostTailError)
      expect((error as Error).message).to.match(
        /the inbox begins at \d+, and what stood below was not over.*runbooks\.md$/,
      )
    }
  })

  it('stops a claim when somebody made the inbox anew, and what stood in the former one was not over', async () => {
    const { broker, connection } = await brokerOf((await natsAccount()).url)
    const batch = { maxItems: 100, idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 }
    const owner = createOwner({ broker, db, buffer, batch })
    await owner.shard.start()
    await ingest(broker, buffer, [{ key: 'a', n: 1 }])
    await eventually(() => owner.gauges.bufferedItems === 1)
    await owner.shard.stop(5_000)
    const manager = await connection.nats.jetstreamManager()
    const { config } = await manager.streams.info('INBOX_0')
    await manager.streams.delete('INBOX_0')
    await manager.streams.add({ ...config, first_seq: Date.now() * 1_000 } as StreamConfig)
    await ingest(broker, buffer, [{ key: 'a', n: 2 }])
    const error = await createOwner({ broker, db, buffer })
      .shard.start()
      .catch((reason: Error) => reason)
    expect(error).to.be.instanceOf(LostTailError)
    expect((error as Error).message).to.match(/the inbox begins at \d+/)
  })

  it('tells that messages in the midst of the inbox are gone, and goes on with the others', async () => {
    const { broker } = await brokerOf((await natsAccount()).url)
    const [first, gone, last] = [
      await ingest(broker, buffer, [{ key: 'a', n: 1 }]),
      await ingest(broker, buffer, [{ key: 'a', n: 2 }]),
      await ingest(broker, buffer, [{ key: 'a', n: 3 }]),
    ]
    const owner = createOwner({ broker: lackingMessage(broker, gone), db, buffer })
    await owner.shard.start()
    await eventually(() => expect(owner.sent.flatMap(({ body }) => numbersOf(body))).to.deep.equal([1, 3]))
    expect([gone - first, last - gone]).to.deep.equal([1, 1])
    await eventually(() => expect(owner.problems).to.have.length(1))
    expect(owner.problems[0]).to.include(`${gone} to ${gone} are not there`)
    await owner.shard.stop(5_000)
  })

  it('stops a claim when Postgres knows a higher epoch and the journal has no later claim', async () => {
    const { broker } = await brokerOf((await natsAccount()).url)
    await createDeadLetters(db).raiseEpoch({ shard: 0, epoch: Number.MAX_SAFE_INTEGER })
    const owner = createOwner({ broker, db, buffer })
    await owner.shard.start()
    await eventually(() => expect(owner.ended).to.be.instanceOf(LostTailError))
    expect(owner.ended?.message).to.match(
      /^shard 0: the journal lost messages, its last claim is \d+ .*runbooks\.md$/,
    )
  })

  it('stops a claim when a journal and its inbox came back together from a backup', async () => {
    const dir = join(tempFolder('lost-both'), 'nats')
    const backup = join(tempFolder('lost-both-backup'), 'nats')
    const server = await ownNats({ dir, sync: 'always' })
    const { broker } = await brokerOf(server.url)
    const first = createOwner({ broker, db, buffer })
    await first.shard.start()
    await ingest(broker, buffer, [{ key: 'a', n: 1 }])
    await wrote(broker, 'done')
    await first.shard.abandon()
    await server.stop()
    cpSync(dir, backup, { recursive: true })
    await server.restart()
    // What this one commits, and what Postgres learns of it, lies behind the backup; its claim in Postgres too.
    await eventually(() => ingest(broker, buffer, [{ key: 'a', n: 2 }]))
    const second = createOwner({ broker, db, buffer })
    await second.shard.start()
    await wrote(broker, 'done', 2)
    const counted = () => createProjection(db).position(0)
    await eventually(async () => expect(await counted()).to.be.above(second.shard.epoch))
    await second.shard.abandon()
    // As if Postgres had known of no claim behind the backup: only its counters tell then.
    await db`UPDATE shards SET epoch = ${first.shard.epoch}`
    await server.stop()
    rmSync(join(dir, 'store'), { recursive: true, force: true })
    cpSync(backup, dir, { recursive: true })
    await server.restart()
    await eventually(() => broker.journal(0).state())
    const before = await counted()
    for (let claim = 0; claim < 2; claim++) {
      const third = createOwner({ broker, db, buffer })
      await third.shard.start()
      await eventually(() => expect(third.ended).to.be.instanceOf(LostTailError))
      expect(third.ended?.message).to.match(
        /^shard 0: the journal lost messages, its last claim is \d+ .*runbooks\.md$/,
      )
      expect(third.sent).to.deep.equal([])
    }
    expect(await counted()).to.equal(before)
  })

  it('stops a claim that stands where a commit was counted', async () => {
    const { broker, connection } = await brokerOf((await natsAccount()).url)
    const owner = createOwner({ broker, db, buffer })
    await owner.shard.start()
    await ingest(broker, buffer, [{ key: 'a', n: 1 }])
    const projection = createProjection(db)
    await eventually(async () => expect(await projection.position(0)).to.be.above(owner.shard.epoch))
    await owner.shard.abandon()
    const counted = await projection.position(0)
    await loseAbove(connection, broker.journal(0), { stream: 'JOURNAL_0', to: counted - 1 })
    const next = createOwner({ broker, db, buffer })
    await next.shard.start().catch(() => {})
    await eventually(() => expect(next.ended).to.be.instanceOf(LostTailError))
    expect(next.ended?.message).to.include(`its last claim is ${counted} `)
    expect(next.sent).to.deep.equal([])
  })

  /** A journal that ends below `at`, and claims of others until it ends at `at` or above. */
  async function otherHistory({ broker, connection }: TestBroker, at: number): Promise<void> {
    const journal = broker.journal(0)
    await loseAbove(connection, journal, { stream: 'JOURNAL_0', to: at - 1 })
    for (let claim = 0; (await journal.state()).lastSeq < at; claim++)
      await appendEpoch(journal, { boot: OTHER_BOOT, claim, clock: systemClock(), stopped: () => false })
  }

  async function expectLost(broker: Broker, what: RegExp): Promise<void> {
    const owner = createOwner({ broker, db, buffer })
    await owner.shard.start()
    await eventually(() => expect(owner.ended).not.to.equal(null))
    expect(owner.ended).to.be.instanceOf(LostTailError)
    expect(owner.ended?.message).to.match(what)
    expect(owner.sent).to.deep.equal([])
  }

  it('stops a claim above the one that Postgres knows, where the journal has another in its place', async () => {
    const nats = await brokerOf((await natsAccount()).url)
    const { broker } = nats
    const claims: number[] = []
    for (let claim = 0; claim < 2; claim++) {
      const owner = createOwner({ broker, db, buffer })
      await owner.shard.start()
      claims.push(owner.shard.epoch)
      await eventually(async () => expect((await letters().remembered(0)).claim.seq).to.equal(claims.at(-1)))
      await owner.shard.abandon()
    }
    await otherHistory(nats, claims[1]!)
    await expectLost(broker, new RegExp(`the journal lost messages, .*another commit stands at ${claims[1]}`))
    // Remembered: nobody replaced what Postgres knew by a claim of this journal.
    await expectLost(broker, /the journal lost messages, .*Postgres knows \d+ of another/)
  })

  it('stops a claim above what was counted, where the journal has another commit there', async () => {
    const nats = await brokerOf((await natsAccount()).url)
    const { broker } = nats
    const owner = createOwner({ broker, db, buffer })
    await owner.shard.start()
    await ingest(broker, buffer, [{ key: 'a', n: 1 }])
    const counted = async () => (await letters().remembered(0)).counted
    await eventually(async () => expect((await counted()).seq).to.be.above(owner.shard.epoch + 1))
    await owner.shard.abandon()
    const before = await counted()
    await otherHistory(nats, before.seq)
    await expectLost(broker, new RegExp(`another commit stands at ${before.seq}`))
    expect(await counted()).to.deep.equal(before)
  })

  it('goes on where Postgres came back from a backup and knows an earlier claim', async () => {
    const { broker } = await brokerOf((await natsAccount()).url)
    const first = createOwner({ broker, db, buffer })
    await first.shard.start()
    await ingest(broker, buffer, [{ key: 'a', n: 1 }])
    const counted = async () => (await letters().remembered(0)).counted.seq
    await eventually(async () => expect(await counted()).to.be.above(first.shard.epoch))
    await first.shard.abandon()
    const [shards, projections] = [await db`SELECT * FROM shards`, await db`SELECT * FROM projections`]
    const second = createOwner({ broker, db, buffer })
    await second.shard.start()
    await ingest(broker, buffer, [{ key: 'a', n: 2 }])
    await eventually(async () => expect(await counted()).to.be.above(second.shard.epoch))
    await db`TRUNCATE shards, projections`
    await db`INSERT INTO shards ${db(shards)}`
    await db`INSERT INTO projections ${db(projections)}`
    // Both the owner that runs and the next one.
    await ingest(broker, buffer, [{ key: 'a', n: 3 }])
    await eventually(async () => expect(await counted()).to.be.above(second.shard.epoch))
    await second.shard.abandon()
    await db`TRUNCATE shards`
    await db`INSERT INTO shards ${db(shards)}`
    const third = createOwner({ broker, db, buffer })
    await third.shard.start()
    await eventually(async () =>
      expect((await letters().remembered(0)).claim.seq).to.equal(third.shard.epoch),
    )
    expect([second.ended, third.ended]).to.deep.equal([null, null])
    await third.shard.abandon()
  })

  it('names in Postgres the claim and the counted commit that the journal has', async () => {
    const { broker } = await brokerOf((await natsAccount()).url)
    const owner = createOwner({ broker, db, buffer })
    await owner.shard.start()
    const named = async () => {
      const { claim, counted } = await letters().remembered(0)
      expect(Math.min(claim.seq, counted.seq)).to.be.above(0)
      for (const { seq, identity } of [claim, counted])
        expect(commitName(seq, (await broker.journal(0).get(seq))!.data).identity).to.equal(identity)
    }
    // Of a fact that the owner committed, and of one that the next owner finds in the journal.
    await ingest(broker, buffer, [{ key: 'a', n: 1 }])
    await eventually(named)
    await owner.shard.abandon()
    await db`TRUNCATE projections`
    const next = createOwner({ broker, db, buffer })
    await next.shard.start()
    await eventually(named)
    await next.shard.abandon()
  })

  it('takes an owner whose successor has counted on for fenced, not for one that lost a tail', async () => {
    const { broker } = await brokerOf((await natsAccount()).url)
    const first = createOwner({ broker, db, buffer })
    await first.shard.start()
    const second = createOwner({ broker, db, buffer })
    await second.shard.start()
    await ingest(broker, buffer, [{ key: 'a', n: 1 }])
    const projection = createProjection(db)
    await eventually(async () => expect(await projection.position(0)).to.be.above(second.shard.epoch))
    const journal = { prove: () => Promise.reject(new FencedError('another claim')) }
    const ends: Error[] = []
    const raised = raiseEpoch({
      fence: { shard: 0, epoch: second.shard.epoch },
      snapshot: null,
      origin: undefined,
      deadLetters: createDeadLetters(db),
      log: broker.journal(0),
      clock: systemClock(),
      journal,
      ended: () => false,
      onFatal: (error) => ends.push(error),
      onProblem: () => {},
    })
    await raised.catch(() => {})
    expect(ends).to.have.length(1)
    expect(ends[0]).to.be.instanceOf(FencedError)
    await second.shard.abandon()
  })

  it('stops a claim of a journal that somebody emptied', async () => {
    const { broker, connection } = await brokerOf((await natsAccount()).url)
    const first = createOwner({ broker, db, buffer })
    await first.shard.start()
    await ingest(broker, buffer, [{ key: 'a', n: 1 }])
    await wrote(broker, 'done')
    await first.shard.abandon()
    await new StreamApi(connection, 'JOURNAL_0').ask('STREAM.PURGE')
    for (let claim = 0; claim < 2; claim++) {
      const next = createOwner({ broker, db, buffer })
      const error = await next.shard.start().catch((reason: Error) => reason)
      expect(error).to.be.instanceOf(LostTailError)
      expect((error as Error).message).to.match(
        /^shard 0: the journal misses commits from \d+ to \d+: .*runbooks\.md$/,
      )
      expect(next.sent).to.deep.equal([])
    }
  })

  /** A running owner with two batches done, whose journal then ends behind the claim. */
  async function ownerOfShortJournal() {
    const { broker, connection } = await brokerOf((await natsAccount()).url)
    const owner = createOwner({ broker, db, buffer })
    await owner.shard.start()
    for (const n of [1, 2]) {
      await ingest(broker, buffer, [{ key: 'a', n }])
      await wrote(broker, 'done', n)
    }
    await loseAbove(connection, broker.journal(0), { stream: 'JOURNAL_0', to: owner.shard.epoch })
    return { broker, owner }
  }

  it('stops a running owner whose commit is refused because the journal ends below it, and remembers that', async () => {
    const { broker, owner } = await ownerOfShortJournal()
    await ingest(broker, buffer, [{ key: 'a', n: 3 }])
    await eventually(() => expect(owner.ended).to.be.instanceOf(LostTailError), { timeoutMs: 20_000 })
    expect(owner.ended?.message).to.match(
      /^shard 0: the broker lost messages \(the journal ends at \d+, its owner wrote \d+\): .*runbooks\.md$/,
    )
    const next = createOwner({ broker, db, buffer })
    await next.shard.start()
    await eventually(() => expect(next.ended).to.be.instanceOf(LostTailError))
    expect(next.sent).to.deep.equal([])
  })

  it('stops a running owner whose last commit is replaced by others that went on behind the loss', async () => {
    const { broker, owner } = await ownerOfShortJournal()
    const journal = broker.journal(0)
    for (let claim = 0; (await journal.state()).lastSeq <= owner.shard.lastSeq; claim++)
      await appendEpoch(journal, { boot: OTHER_BOOT, claim, clock: systemClock(), stopped: () => false })
    await ingest(broker, buffer, [{ key: 'a', n: 3 }])
    await eventually(() => expect(owner.ended).not.to.equal(null), { timeoutMs: 20_000 })
    expect(owner.ended).to.be.instanceOf(LostTailError)
    expect(owner.ended?.message).to.match(/another has written where its owner wrote \d+/)
  })

  it('stops a running owner whose broker does not answer at first when it is back', async () => {
    const { broker, connection } = await brokerOf((await natsAccount()).url)
    let answers = true
    const silent = silentJournals(broker, () => !answers)
    const owner = createOwner({ broker: silent.broker, db, buffer, housekeeping: { everyMs: 600_000 } })
    await owner.shard.start()
    await ingest(broker, buffer, [{ key: 'a', n: 1 }])
    await wrote(broker, 'done')
    answers = false
    silent.reconnect()
    await eventually(() => expect(owner.problems.join()).to.include('the logs cannot be checked'))
    await loseAbove(connection, broker.journal(0), { stream: 'JOURNAL_0', to: owner.shard.epoch })
    expect(owner.ended).to.equal(null)
    answers = true
    await eventually(() => expect(owner.ended).to.be.instanceOf(LostTailError))
    const next = createOwner({ broker, db, buffer })
    await next.shard.start().catch(() => {})
    await eventually(() => expect(next.ended).to.be.instanceOf(LostTailError))
    const cannot = owner.problems.filter((problem) => problem.startsWith('the logs cannot be checked'))
    expect(cannot, 'told once').to.have.length(1)
  })

  it('does not stop an owner whose journal a server that was behind answered for', async () => {
    const { broker } = await brokerOf((await natsAccount()).url)
    let behind: LogState | null = null
    const stale = staleJournals(broker, () => behind)
    const owner = createOwner({ broker: stale.broker, db, buffer, housekeeping: { everyMs: 600_000 } })
    await owner.shard.start()
    const before = await broker.journal(0).state()
    await ingest(broker, buffer, [{ key: 'a', n: 1 }])
    await wrote(broker, 'done')
    behind = before
    stale.reconnect()
    await eventually(() => expect(owner.problems.join()).to.include('the logs cannot be checked'))
    behind = null
    await ingest(broker, buffer, [{ key: 'a', n: 2 }])
    await wrote(broker, 'done', 2)
    expect(owner.ended).to.equal(null)
  })

  it('stops a running owner whose broker comes back from a backup, and nobody claims again', async () => {
    const dir = join(tempFolder('lost-tail'), 'nats')
    const backup = join(tempFolder('lost-tail-backup'), 'nats')
    const server = await ownNats({ dir, sync: 'always' })
    const { broker } = await brokerOf(server.url, 2)
    const { node, problems } = createNode({ broker, db, buffer }, 2)
    ends.push(() => node.stop(1_000))
    await node.start()
    await ingest(broker, buffer, [{ key: 'a', n: 1 }])
    await wrote(broker, 'done')
    await server.stop()
    cpSync(dir, backup, { recursive: true })
    await server.restart()
    // Until the connection is back an append answers that nobody knows.
    await eventually(() => ingest(broker, buffer, [{ key: 'a', n: 2 }]))
    await wrote(broker, 'done', 2)
    expect(node.troubles()).to.deep.equal([])
    await server.stop()
    rmSync(join(dir, 'store'), { recursive: true, force: true })
    cpSync(backup, dir, { recursive: true })
    await server.restart()
    const lost = () => node.troubles().filter(({ trouble }) => /: the broker lost messages/.test(trouble))
    // The other shard, too, when it had to be claimed anew since the backup.
    await eventually(() => expect(lost().map(({ shard }) => shard)).to.include(0))
    await quarantinedTwice()
    expect(
      problems.filter((problem) => problem.includes('the broker lost messages: LostTailError')),
    ).to.have.length(lost().length)
    expect(node.shard(0)).to.equal(null)
  })
})
