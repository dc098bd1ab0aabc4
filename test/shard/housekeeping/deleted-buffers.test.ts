/** When an owner lets go of a deleted buffer. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { createBufferCache } from '../../../internal/buffers/cache.ts'
import { createBufferRows } from '../../../internal/postgres/buffers.ts'
import { createDeletedBuffers } from '../../../internal/postgres/deleted-buffers.ts'
import { createSecretBox } from '../../../internal/postgres/secrets.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import {
  DeletedBufferReports,
  type DeletedBufferReportsOptions,
} from '../../../internal/shard/housekeeping/deleted-buffers.ts'
import type { DeletedBuffers, Policies } from '../../../internal/shard/ports.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { eventually } from '../../support/eventually.ts'
import { insertBuffer } from '../../support/rows.ts'
import { ownersOfEachTest } from '../owners.ts'
import { numbersOf, type Owner, recordOf } from '../real-owner.ts'

describe('reports of deleted buffers, real broker and database', function () {
  this.timeout(120_000)
  const here = ownersOfEachTest()

  const own = (destination: () => Promise<number> | number): Promise<Owner> =>
    here.own({ destination, deletedBuffers: createDeletedBuffers(here.db, { shards: 1, everyMs: 20 }) })

  const markDeleted = () => here.db`
    UPDATE buffers SET deleted_state = 'enabled', deleted_at = now() - interval '1 hour'
    WHERE uid = ${here.buffer.uid}`
  const rowsLeft = async () => (await here.db`SELECT FROM buffers`).length
  const held = async () => (await here.db<{ held: string[] }[]>`SELECT held FROM shard_reports`)[0]?.held

  it('hold a buffer until its last item is over, over a change of the owner too; then its row goes', async () => {
    const { promise: answer, resolve: answerNow } = Promise.withResolvers<number>()
    const first = await own(() => answer)
    await here.ingest([{ key: 'a', n: 1 }])
    await eventually(() => first.sent.length === 1)
    await markDeleted()
    await eventually(async () => expect(await held()).to.deep.equal([here.buffer.uid]))
    await first.shard.abandon()
    await here.db`DELETE FROM shard_reports`
    const second = await own(() => answer)
    await eventually(async () => expect(await held()).to.deep.equal([here.buffer.uid]))
    expect(await rowsLeft()).to.equal(1)
    answerNow(200)
    await eventually(async () => expect(await rowsLeft()).to.equal(0))
    expect(second.problems).to.deep.equal([])
    const [report] = await here.db`SELECT * FROM shard_reports`
    const { lastSeq } = await here.broker.inbox(0).state()
    expect(report).to.include({ shard: 0, epoch: second.shard.epoch, position: lastSeq })
  })

  it('let go of a buffer that the shard never saw, and say nothing where nothing was deleted', async () => {
    const owner = await own(() => 200)
    await here.ingest([{ key: 'a', n: 1 }])
    await eventually(() => owner.sent.length === 1)
    expect(await here.db`SELECT FROM shard_reports`).to.have.length(0)
    const other = await insertBuffer(here.db, here.buffer.customerId)
    await here.db`UPDATE buffers SET deleted_state = 'disabled', deleted_at = now() - interval '1 hour'
      WHERE uid = ${other.uid}`
    await eventually(async () => expect(await rowsLeft()).to.equal(1))
    expect(await here.db`SELECT FROM buffers WHERE uid = ${here.buffer.uid}`).to.have.length(1)
  })
})

describe('an item that was accepted for a removed buffer', function () {
  this.timeout(120_000)
  const here = ownersOfEachTest()

  /** As an actor has it that starts now. */
  function policies(): Policies {
    const box = createSecretBox([{ id: 'test', key: new Uint8Array(32) }])
    return createBufferCache({ rows: createBufferRows(here.db, box), clock: systemClock() })
  }

  it('becomes a dead letter of the customer, and nothing waits', async () => {
    await here.db`DELETE FROM buffers`
    const owner = await here.own({ policies: policies() })
    await here.ingest([{ key: 'a', n: 1 }])
    const letters = () => here.db`
      SELECT customer_id, project_id, buffer_id, reason, last_error, convert_from(body, 'UTF8') AS body FROM dlq_items`
    await eventually(async () => expect(await letters()).to.have.length(1), { timeoutMs: 30_000 })
    const [{ body, ...letter }] = (await letters()) as unknown as [Record<string, string>]
    const { customerId, projectId, bufferId } = here.buffer
    expect(letter).to.deep.equal({
      customer_id: customerId,
      project_id: projectId,
      buffer_id: bufferId,
      reason: 'non_retryable_error',
      last_error: 'the buffer was deleted, and its configuration is removed',
    })
    expect(numbersOf(body!)).to.deep.equal([1])
    expect(owner.sent).to.deep.equal([])
    await eventually(() => owner.gauges.bufferedItems === 0)
    expect(owner.problems).to.deep.equal([])
  })

  it('is held where nobody knows whose it was, as in an older copy of the database, until the row is back', async () => {
    const copy = await here.db`SELECT * FROM buffers`
    await here.db`DELETE FROM buffers`
    await here.db`DELETE FROM buffer_owners`
    const owner = await here.own({ policies: policies() })
    await here.ingest([{ key: 'a', n: 1 }])
    await eventually(() => owner.problems.length > 0)
    expect(new Set(owner.problems)).to.deep.equal(
      new Set([`items of a buffer that does not exist are held: buffer ${here.buffer.uid}`]),
    )
    const { config: _, ...row } = copy[0]!
    const { uid, buffer } = recordOf(here.buffer)
    const { bufferId: __, customerId: ___, projectId: ____, ...config } = buffer
    await here.db`INSERT INTO buffers ${here.db({ ...row, uid, config: here.db.json(config as never) } as never)}`
    await eventually(() => owner.sent.length === 1, { timeoutMs: 30_000 })
  })
})

describe('one report of deleted buffers', () => {
  const UID = '00000000-0000-4000-8000-000000000001'

  /** A shard at rest that is asked about one buffer; what a test changes is told by name. */
  function shard(given: { cursor?: number; replaying?: boolean; buffers?: string[]; number?: number } = {}) {
    const clock = new ManualClock()
    const replay = { cursor: given.cursor ?? 11, replaying: given.replaying ?? false }
    const buffers = new Set(given.buffers ?? [])
    const told: string[] = []
    const { promise: proved, resolve: prove } = Promise.withResolvers<void>()
    const options = {
      clock,
      replay,
      fence: { shard: given.number ?? 1, epoch: 3 },
      raised: Promise.resolve(),
      deletedBuffers: {
        everyMs: 1_000,
        pending: async () => ({ before: 'then', uids: [UID] }),
        report: async (_: unknown, { before, position, held }: Parameters<DeletedBuffers['report']>[1]) => {
          told.push(`${before} ${position} [${held}]`)
        },
        remove: async () => {
          told.push('removed')
        },
      },
      inboxLog: { state: async () => ({ firstSeq: 1, lastSeq: 10, messages: 10, bytes: 1, maxBytes: 0 }) },
      groups: { buffers: () => [...buffers].map((uid) => ({ uid })) },
      journal: { flush: () => proved },
      onProblem: (what: string, error: unknown) => told.push(`${what}: ${error}`),
    }
    const reports = new DeletedBufferReports(options as unknown as DeletedBufferReportsOptions)
    return { clock, replay, buffers, told, prove, reports }
  }

  /** Everything that can go on without time has gone on. */
  const settled = () => new Promise(setImmediate)

  it('waits until the shard has read what was appended before', async () => {
    for (const behind of [{ cursor: 10 }, { replaying: true }]) {
      const { clock, replay, buffers, told, prove } = shard(behind)
      prove()
      clock.advance(1_000)
      await settled()
      clock.advance(100)
      await settled()
      expect(told).to.deep.equal([])
      // What it has read meanwhile counts.
      buffers.add(UID)
      Object.assign(replay, { cursor: 12, replaying: false })
      clock.advance(100)
      await settled()
      expect(told).to.deep.equal([`then 11 [${UID}]`])
    }
  })

  it('is left to the next round when the reader stays behind', async () => {
    const { clock, replay, told, prove } = shard({ cursor: 5 })
    prove()
    clock.advance(1_000)
    await settled()
    clock.advance(10_000)
    await settled()
    replay.cursor = 11
    clock.advance(100)
    await settled()
    expect(told).to.deep.equal([])
    clock.advance(900)
    await settled()
    expect(told).to.deep.equal(['then 10 []'])
  })

  it('is made after all that was written until then is committed', async () => {
    const { clock, told, prove } = shard()
    clock.advance(1_000)
    await settled()
    expect(told).to.deep.equal([])
    prove()
    await settled()
    expect(told).to.deep.equal(['then 10 []'])
  })

  it('is not made by a shard that stopped', async () => {
    const { clock, told, prove, reports } = shard()
    clock.advance(1_000)
    await settled()
    reports.stop()
    prove()
    await settled()
    expect(told).to.deep.equal([])
    expect(clock.pending).to.equal(0)
  })

  it('is followed by the removal on the first shard only', async () => {
    const { clock, told, prove } = shard({ number: 0 })
    prove()
    clock.advance(1_000)
    await settled()
    expect(told).to.deep.equal(['then 10 []', 'removed'])
  })
})
