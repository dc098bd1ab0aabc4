import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { createDeadLetterQueue, type DeadLetterQueue } from '../../internal/dlq/dead-letters.ts'
import { ServiceError } from '../../internal/domain/errors.ts'
import type { Principal } from '../../internal/domain/principal.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
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
    db = connect(await freshDatabase())
    queue = createDeadLetterQueue({ store: createDeadLetterStore(db) })
  })

  after(() => db.end())

  beforeEach(async () => {
    buffer = await insertBuffer(db, await insertCustomer(db))
    owner = { customerId: buffer.customerId, role: 'owner', via: 'key' }
  })

  async function bury(given: Partial<DeadBatch> = {}, to = buffer): Promise<DeadBatch> {
    const batch = deadBatch(to, given)
    await createDeadLetters(db).bury({ shard: 1, epoch: 1 }, batch)
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
      await bury({ createdAt: 1_000 }),
      await bury({ createdAt: 3_000 }),
      await bury({ createdAt: 2_000 }),
    ]
    await bury({}, await insertBuffer(db, await insertCustomer(db)))
    expect(await ids(owner)).to.deep.equal([third.dlqId, second.dlqId, first.dlqId])
    expect(await ids(owner, { limit: 2 })).to.deep.equal([third.dlqId, second.dlqId])
  })

  it('filters by buffer, and knows an empty buffer from none', async () => {
    const other = await insertBuffer(db, buffer.customerId)
    const batch = await bury()
    expect(await ids(owner, { bufferId: buffer.bufferId })).to.deep.equal([batch.dlqId])
    expect(await ids(owner, { bufferId: other.bufferId })).to.deep.equal([])
    expect(await refusal(ids(owner, { bufferId: 'nobody' }))).to.equal(404)
    expect(await refusal(ids(owner, { bufferId: 'a\u0000b' }))).to.equal(404)
    const stranger = await insertBuffer(db, await insertCustomer(db))
    await bury({}, stranger)
    expect(await refusal(ids(owner, { bufferId: stranger.bufferId }))).to.equal(404)
  })

  it('keeps the items of a deleted buffer readable', async () => {
    const batch = await bury()
    await db`UPDATE buffers SET deleted_at = now(), deleted_state = 'enabled' WHERE uid = ${buffer.uid}`
    expect(await ids(owner, { bufferId: buffer.bufferId })).to.deep.equal([batch.dlqId])
    expect((await queue.read(owner, batch.dlqId)).dlqId).to.equal(batch.dlqId)
  })

  it('reads one item and the exact bytes of its batch', async () => {
    const batch = await bury()
    expect(await queue.read(owner, batch.dlqId)).to.deep.include({ dlqId: batch.dlqId, payloadStored: true })
    expect(Buffer.compare(await queue.batch(owner, batch.dlqId), batch.body)).to.equal(0)
  })

  it('answers 409 for a batch that was never stored', async () => {
    const batch = await bury()
    await db`UPDATE dlq_items SET body = NULL WHERE dlq_id = ${batch.dlqId}`
    expect((await queue.read(owner, batch.dlqId)).payloadStored).to.equal(false)
    expect(await refusal(queue.batch(owner, batch.dlqId))).to.equal(409)
  })

  it('removes an item with its batch, once', async () => {
    const batch = await bury()
    await queue.remove(owner, batch.dlqId)
    for (const again of [queue.remove, queue.read, queue.batch]) {
      expect(await refusal(again(owner, batch.dlqId))).to.equal(404)
    }
  })

  it('refuses another customer with 403 and an unknown id with 404, and changes nothing', async () => {
    const batch = await bury()
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
    const inside = await bury()
    const outside = await bury({}, other)
    const scoped: Principal = { ...owner, projectIds: [buffer.projectId] }
    expect(await ids(scoped)).to.deep.equal([inside.dlqId])
    expect(await refusal(ids(scoped, { bufferId: other.bufferId }))).to.equal(404)
    for (const call of [queue.read, queue.batch, queue.remove]) {
      expect(await refusal(call(scoped, outside.dlqId))).to.equal(404)
    }
    await queue.remove(scoped, inside.dlqId)
    expect(await ids(owner)).to.deep.equal([outside.dlqId])
  })
})
