import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { createDeadLetterQueue, type DeadLetterQueue } from '../../internal/dlq/dead-letters.ts'
import type { DeadLetterStore } from '../../internal/dlq/ports.ts'
import { ServiceError } from '../../internal/domain/errors.ts'
import type { Principal } from '../../internal/domain/principal.ts'
import { connect, type Database, type Transaction } from '../../internal/postgres/connection.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { createDeadLetterStore } from '../../internal/postgres/dlq-items.ts'
import type { DeadBatch } from '../../internal/shard/ports.ts'
import { deadBatch } from '../support/dead-batch.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

describe('dlq: the dead letter queue of a customer', () => {
  let db: Database
  let queue: DeadLetterQueue
  let buffer: TestBuffer
  let owner: Principal

  before(async () => {
    db = connect(await freshDatabase(), { statementTimeoutMs: 0 })
    queue = createDeadLetterQueue({ store: createDeadLetterStore(db) })
  })

  after(() => db.end())

  beforeEach(async () => {
    buffer = await insertBuffer(db, await insertCustomer(db))
    owner = { customerId: buffer.customerId, role: 'owner', via: 'key' }
  })

  async function writeDeadLetter(given: Partial<DeadBatch> = {}, to = buffer): Promise<DeadBatch> {
    const batch = deadBatch(to, given)
    await createDeadLetters(db).write({ shard: 1, epoch: 1 }, batch)
    return batch
  }

  async function refusal(running: Promise<unknown>): Promise<number> {
    const error = await running.then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    if (!(error instanceof ServiceError)) throw new Error(`no refusal: ${error}`)
    return error.status
  }

  const ids = async (principal: Principal, filter: { bufferId?: string; limit?: number } = {}) =>
    (await queue.list(principal, { limit: 100, ...filter })).map((item) => item.dlqId)

  it('lists newest first, up to the limit, of one customer', async () => {
    const [first, third, second] = [
      await writeDeadLetter({ createdAt: 1_000 }),
      await writeDeadLetter({ createdAt: 3_000 }),
      await writeDeadLetter({ createdAt: 2_000 }),
    ]
    await writeDeadLetter({}, await insertBuffer(db, await insertCustomer(db)))
    expect(await ids(owner)).to.deep.equal([third.dlqId, second.dlqId, first.dlqId])
    expect(await ids(owner, { limit: 2 })).to.deep.equal([third.dlqId, second.dlqId])
  })

  it('filters by buffer, and knows an empty buffer from none', async () => {
    const other = await insertBuffer(db, buffer.customerId)
    const batch = await writeDeadLetter()
    expect(await ids(owner, { bufferId: buffer.bufferId })).to.deep.equal([batch.dlqId])
    expect(await ids(owner, { bufferId: other.bufferId })).to.deep.equal([])
    expect(await refusal(ids(owner, { bufferId: 'nobody' }))).to.equal(404)
    expect(await refusal(ids(owner, { bufferId: 'a\u0000b' }))).to.equal(404)
    const stranger = await insertBuffer(db, await insertCustomer(db))
    await writeDeadLetter({}, stranger)
    expect(await refusal(ids(owner, { bufferId: stranger.bufferId }))).to.equal(404)
  })

  it('keeps the items of a deleted buffer readable', async () => {
    const batch = await writeDeadLetter()
    await db`UPDATE buffers SET deleted_at = now(), deleted_state = 'enabled' WHERE uid = ${buffer.uid}`
    expect(await ids(owner, { bufferId: buffer.bufferId })).to.deep.equal([batch.dlqId])
    expect((await queue.read(owner, batch.dlqId)).dlqId).to.equal(batch.dlqId)
  })

  it('reads one item and the exact bytes of its batch', async () => {
    const batch = await writeDeadLetter()
    expect(await queue.read(owner, batch.dlqId)).to.deep.include({ dlqId: batch.dlqId, payloadStored: true })
    expect(Buffer.compare(await queue.batch(owner, batch.dlqId), batch.body)).to.equal(0)
  })

  it('answers 409 for a batch that was never stored', async () => {
    const batch = await writeDeadLetter()
    await db`UPDATE dlq_items SET body = NULL WHERE dlq_id = ${batch.dlqId}`
    expect((await queue.read(owner, batch.dlqId)).payloadStored).to.equal(false)
    expect(await refusal(queue.batch(owner, batch.dlqId))).to.equal(409)
  })

  it('removes an item with its batch, once', async () => {
    const batch = await writeDeadLetter()
    await queue.remove(owner, batch.dlqId)
    for (const again of [queue.remove, queue.read, queue.batch]) {
      expect(await refusal(again(owner, batch.dlqId))).to.equal(404)
    }
  })

  it('refuses another customer with 403 and an unknown id with 404, and changes nothing', async () => {
    const batch = await writeDeadLetter()
    const stranger: Principal = { customerId: await insertCustomer(db), role: 'owner', via: 'key' }
    for (const call of [queue.read, queue.batch, queue.remove]) {
      expect(await refusal(call(stranger, batch.dlqId))).to.equal(403)
      expect(await refusal(call(owner, 'unknown'))).to.equal(404)
      expect(await refusal(call(owner, 'a\u0000b'))).to.equal(404)
    }
    expect(await ids(owner)).to.deep.equal([batch.dlqId])
    expect(await ids(stranger)).to.deep.equal([])
  })

  it('shows a project-scoped key only the items of its projects', async () => {
    const other = await insertBuffer(db, buffer.customerId)
    const inside = await writeDeadLetter()
    const outside = await writeDeadLetter({}, other)
    const scoped: Principal = { ...owner, projectIds: [buffer.projectId] }
    expect(await ids(scoped)).to.deep.equal([inside.dlqId])
    expect(await refusal(ids(scoped, { bufferId: other.bufferId }))).to.equal(404)
    for (const call of [queue.read, queue.batch, queue.remove]) {
      expect(await refusal(call(scoped, outside.dlqId))).to.equal(404)
    }
    await queue.remove(scoped, inside.dlqId)
    expect(await ids(owner)).to.deep.equal([outside.dlqId])
  })

  describe('lists', () => {
    it('in a stable order among items of one moment, without a gap or a repetition', async () => {
      const made = await Promise.all(Array.from({ length: 20 }, () => writeDeadLetter({ createdAt: 5_000 })))
      const newest = await writeDeadLetter({ createdAt: 6_000 })
      const sorted = made.map(({ dlqId }) => dlqId).sort((a, b) => (a < b ? 1 : -1))
      for (const limit of [1, 7, 21, 500]) {
        expect(await ids(owner, { limit })).to.deep.equal([newest.dlqId, ...sorted].slice(0, limit))
      }
    })

    it('merges the projects of a scoped key, newest first, each item once', async () => {
      const other = await insertBuffer(db, buffer.customerId)
      const [first, second, third] = [
        await writeDeadLetter({ createdAt: 1_000 }),
        await writeDeadLetter({ createdAt: 2_000 }, other),
        await writeDeadLetter({ createdAt: 3_000 }),
      ]
      await writeDeadLetter({ createdAt: 4_000 }, await insertBuffer(db, buffer.customerId))
      const projectIds = [other.projectId, buffer.projectId, buffer.projectId, 'none']
      const scoped: Principal = { ...owner, projectIds }
      const all = [third.dlqId, second.dlqId, first.dlqId]
      expect(await ids(scoped)).to.deep.equal(all)
      expect(await ids(scoped, { limit: 2 })).to.deep.equal(all.slice(0, 2))
      expect(await ids(scoped, { bufferId: other.bufferId })).to.deep.equal([second.dlqId])
    })

    it('keeps a deleted buffer apart from the one that has its id now, in another project', async () => {
      const batch = await writeDeadLetter()
      await db`UPDATE buffers SET deleted_at = now(), deleted_state = 'enabled' WHERE uid = ${buffer.uid}`
      const heir = await insertBuffer(db, buffer.customerId)
      await db`UPDATE buffers SET buffer_id = ${buffer.bufferId} WHERE uid = ${heir.uid}`
      const scoped: Principal = { ...owner, projectIds: [heir.projectId] }
      expect(await ids(scoped, { bufferId: buffer.bufferId })).to.deep.equal([])
      expect(await ids(owner, { bufferId: buffer.bufferId })).to.deep.equal([batch.dlqId])
    })

    describe('in pages', () => {
      type Page = Parameters<DeadLetterQueue['list']>[1]

      const cursorOf = ({ createdAt, dlqId }: { createdAt: number; dlqId: string }) => `${createdAt}_${dlqId}`

      /** All of them, page by page, each as the ids of its items. */
      async function pages(principal: Principal, query: Page): Promise<string[][]> {
        const found: string[][] = []
        for (let cursor: string | undefined; ; ) {
          const page = await queue.list(principal, { ...query, ...(cursor !== undefined && { cursor }) })
          const last = page.at(-1)
          if (last === undefined) return found
          found.push(page.map(({ dlqId }) => dlqId))
          cursor = cursorOf(last)
        }
      }

      /** `rows` of `items` items with ids of 500 bytes each, newest first. */
      async function large(rows: number, items: number): Promise<string[]> {
        const dlqIds: string[] = []
        for (let n = 0; n < rows; n++) {
          const messageIds = Array.from({ length: items }, (_, id) => `${id}`.padEnd(500, 'x'))
          const { dlqId } = await writeDeadLetter({ createdAt: n, itemCount: items, messageIds })
          dlqIds.unshift(dlqId)
        }
        return dlqIds
      }

      it('behind the last entry of the page before, also when it was removed since, for every form of list', async () => {
        const made = await Promise.all(Array.from({ length: 7 }, () => writeDeadLetter({ createdAt: 5_000 })))
        const sorted = made.map(({ dlqId }) => dlqId).sort((a, b) => (a < b ? 1 : -1))
        const split = [sorted.slice(0, 3), sorted.slice(3, 6), sorted.slice(6)]
        expect(await pages(owner, { limit: 3 })).to.deep.equal(split)
        expect(await pages(owner, { limit: 3, bufferId: buffer.bufferId })).to.deep.equal(split)
        const scoped: Principal = { ...owner, projectIds: [buffer.projectId, 'none'] }
        expect(await pages(scoped, { limit: 3 })).to.deep.equal(split)
        const [first] = sorted
        await queue.remove(owner, first!)
        const cursor = cursorOf({ createdAt: 5_000, dlqId: first! })
        const rest = await queue.list(owner, { limit: 500, cursor })
        expect(rest.map(({ dlqId }) => dlqId)).to.deep.equal(sorted.slice(1))
      })

      it('of about 4 MB, and of one dead letter that is larger', async () => {
        // 2.5 MB each.
        const dlqIds = await large(5, 5_000)
        const halves = [dlqIds.slice(0, 2), dlqIds.slice(2, 4), dlqIds.slice(4)]
        expect(await pages(owner, { limit: 100 })).to.deep.equal(halves)
        expect(await pages({ ...owner, projectIds: [buffer.projectId] }, { limit: 100 })).to.deep.equal(
          halves,
        )
      })

      it('that hold as many as are asked for, when their ids are short', async () => {
        const short = Array.from({ length: 2_000 }, (_, n) => `${n}`)
        const made: string[] = []
        for (let n = 0; n < 20; n++)
          made.unshift((await writeDeadLetter({ createdAt: n, itemCount: 2_000, messageIds: short })).dlqId)
        expect(await ids(owner)).to.deep.equal(made)
      })

      it('that read no ids of what they leave out', async () => {
        const [newest] = await large(20, 5_000)
        const scope = { customerId: buffer.customerId, projectIds: null }
        const one = await rowsRead((store) => store.find(newest!), 'toast')
        expect(one).to.be.greaterThan(0)
        const page = await rowsRead((store) => store.list(scope, { limit: 100 }), 'toast')
        // Two rows, each of which is measured and answered.
        expect(page).to.be.within(2 * one, 5 * one)
      })

      it('the last of which is empty, also of a buffer that is deleted', async () => {
        const { createdAt, dlqId } = await writeDeadLetter()
        await db`UPDATE buffers SET deleted_at = now(), deleted_state = 'enabled' WHERE uid = ${buffer.uid}`
        const query = { limit: 5, bufferId: buffer.bufferId }
        expect(await queue.list(owner, query)).to.have.length(1)
        expect(await queue.list(owner, { ...query, cursor: cursorOf({ createdAt, dlqId }) })).to.deep.equal(
          [],
        )
      })

      it('and not for a cursor that names no place', async () => {
        for (const cursor of [
          'x',
          '5',
          '_',
          '5_',
          '-1_a',
          '5_a\u0000',
          `1234567890123456_a`,
          `5_${'a'.repeat(129)}`,
        ])
          expect(await refusal(queue.list(owner, { limit: 5, cursor })), cursor).to.equal(400)
      })
    })

    it('reads what it answers, not the history of the customer', async function () {
      this.timeout(120_000)
      const other = await insertBuffer(db, buffer.customerId)
      for (let n = 0; n < 3; n++) await writeDeadLetter({ createdAt: n })
      const row = await writeDeadLetter({}, other)
      await db`INSERT INTO dlq_items
        SELECT (i).* FROM (
          SELECT jsonb_populate_record(d, jsonb_build_object(
            'dlq_id', 'many-' || n, 'version', 1000 + n, 'created_at', 1000 + n)) AS i
          FROM dlq_items d, generate_series(1, 20000) AS n WHERE d.dlq_id = ${row.dlqId}) AS many`
      await db`ANALYZE dlq_items`
      const scope = { customerId: buffer.customerId, projectIds: null }
      const narrow = { ...scope, projectIds: [buffer.projectId, other.projectId] }
      const one = { ...scope, projectIds: [buffer.projectId] }
      for (const [reach, filter] of [
        [scope, { limit: 5 }],
        [scope, { limit: 5, bufferId: buffer.bufferId }],
        [scope, { limit: 5, bufferId: other.bufferId }],
        [narrow, { limit: 5 }],
        [one, { limit: 5 }],
        [one, { limit: 5, bufferId: buffer.bufferId }],
      ] as const) {
        const read = await rowsRead((store) => store.list(reach, filter), 'table')
        expect(read, JSON.stringify([reach, filter])).to.be.at.most(20)
      }
    })
  })

  /** Rows of `dlq_items` that `work` touches, or pieces of values too large to stand in their rows. */
  function rowsRead(
    work: (store: DeadLetterStore) => Promise<unknown>,
    of: 'table' | 'toast',
  ): Promise<number> {
    return db.begin(async (transaction) => {
      const before = await rowsTouched(transaction, of)
      await work(createDeadLetterStore(transaction as unknown as Database))
      return (await rowsTouched(transaction, of)) - before
    })
  }

  async function rowsTouched(transaction: Transaction, of: 'table' | 'toast'): Promise<number> {
    const [touched] = await transaction<{ rows: number }[]>`
      SELECT (seq_tup_read + coalesce(idx_tup_fetch, 0))::int AS rows FROM pg_stat_xact_all_tables
      WHERE relid = (SELECT ${of === 'table' ? transaction`oid` : transaction`reltoastrelid`}
        FROM pg_class WHERE oid = 'dlq_items'::regclass)`
    return touched!.rows
  }
})
