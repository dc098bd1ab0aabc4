import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { createDeletedBuffers } from '../../internal/postgres/deleted-buffers.ts'
import { createDeadLetterStore } from '../../internal/postgres/dlq-items.ts'
import { raiseEpoch } from '../../internal/postgres/shards.ts'
import { type DeletedBuffers, FencedError } from '../../internal/shard/ports.ts'
import { deadBatch } from '../support/dead-batch.ts'
import { insertBuffer, insertCustomer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

describe('postgres: rows of deleted buffers', () => {
  let db: Database
  let customerId: string
  let rows: DeletedBuffers
  const SHARDS = 3

  before(async () => {
    db = connect(await freshDatabase())
    customerId = await insertCustomer(db)
    rows = createDeletedBuffers(db, { shards: SHARDS })
  })
  after(() => db.end())
  beforeEach(async () => {
    await db`DELETE FROM buffers`
    await db`DELETE FROM shard_reports`
    await db`DELETE FROM shards`
  })

  /** A buffer that was deleted so many minutes ago. */
  async function deleted(minutes: number): Promise<string> {
    const { uid } = await insertBuffer(db, customerId)
    await db`UPDATE buffers SET deleted_state = 'enabled',
      deleted_at = now() - ${minutes}::int * interval '1 minute' WHERE uid = ${uid}`
    return uid
  }

  const fence = (shard: number, epoch = 1) => ({ shard, epoch })

  /** What an owner does that holds `held` of what it is asked about. */
  async function report(shard: number, held: string[] = []): Promise<string[]> {
    const { before: moment, uids } = await rows.pending(shard)
    await rows.report(fence(shard), { before: moment, position: 5, held })
    return uids
  }

  const left = async () => (await db<{ uid: string }[]>`SELECT uid FROM buffers`).map(({ uid }) => uid)

  it('are asked about ten minutes after the deletion, and never again once they were let go', async () => {
    const old = await deleted(11)
    const young = await deleted(9)
    await insertBuffer(db, customerId)
    expect(await report(0)).to.deep.equal([old])
    expect(await report(0)).to.deep.equal([])
    expect((await rows.pending(1)).uids).to.deep.equal([old])
    await db`UPDATE buffers SET deleted_at = deleted_at - interval '2 minutes' WHERE uid = ${young}`
    // Ten minutes have passed for it, but not since the last report's moment in the past.
    await db`UPDATE shard_reports SET deleted_before = deleted_before - interval '2 minutes'`
    expect(await report(0)).to.include(young)
  })

  it('are asked about again while they are held', async () => {
    const [held, free] = [await deleted(30), await deleted(30)]
    expect(await report(0, [held])).to.have.members([held, free])
    expect(await report(0, [held])).to.deep.equal([held])
    expect(await report(0)).to.deep.equal([held])
    expect(await report(0)).to.deep.equal([])
  })

  it('go when every shard has let go of them, and not before', async () => {
    const uid = await deleted(30)
    const living = await insertBuffer(db, customerId)
    await db`UPDATE buffers SET enabled = false WHERE uid = ${living.uid}`
    for (const shard of [0, 1]) {
      await report(shard)
      await rows.remove()
      expect(await left()).to.have.members([uid, living.uid])
    }
    await report(2, [uid])
    await rows.remove()
    expect(await left()).to.have.members([uid, living.uid])
    await report(2)
    await rows.remove()
    expect(await left()).to.deep.equal([living.uid])
    const told = await db<{ id: string }[]>`SELECT id FROM config_changes WHERE entity = 'buffer'`
    expect(told.map(({ id }) => id)).not.to.include(uid)
    expect(told.map(({ id }) => id)).to.include(living.uid)
  })

  it('stay when they were deleted after what a shard has reported', async () => {
    const early = await deleted(30)
    for (const shard of [0, 1, 2]) await report(shard)
    const late = await deleted(20)
    await db`UPDATE shard_reports SET deleted_before = now() - interval '25 minutes' WHERE shard = 1`
    await rows.remove()
    expect(await left()).to.deep.equal([late])
    expect(early).not.to.equal(late)
  })

  it('stay while a shard that reports no more holds them', async () => {
    const uid = await deleted(30)
    await report(7, [uid])
    for (const shard of [0, 1, 2]) await report(shard)
    await rows.remove()
    expect(await left()).to.deep.equal([uid])
  })

  it('are not let go of by a stale owner', async () => {
    await deleted(30)
    await raiseEpoch(db, fence(0, 9))
    const { before: moment } = await rows.pending(0)
    const error = await rows.report(fence(0, 8), { before: moment, position: 5, held: [] }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(error).to.be.instanceOf(FencedError)
    expect(await db`SELECT FROM shard_reports`).to.have.length(0)
  })

  it('are not let go of anew by an older moment', async () => {
    const uid = await deleted(30)
    await report(0)
    await rows.report(fence(0), { before: '2020-01-01T00:00:00Z', position: 5, held: [uid] })
    expect((await rows.pending(0)).uids).to.deep.equal([])
    await db`UPDATE shard_reports SET deleted_before = now()`
    await report(0)
    expect(await db`SELECT FROM shard_reports WHERE held = '{}'`).to.have.length(1)
  })

  it('leave their dead letters behind', async () => {
    const buffer = await insertBuffer(db, customerId)
    const batch = deadBatch(buffer)
    await createDeadLetters(db).write(fence(0), batch)
    await db`UPDATE buffers SET deleted_state = 'enabled', deleted_at = now() - interval '1 hour'
      WHERE uid = ${buffer.uid}`
    for (const shard of [0, 1, 2]) await report(shard)
    await rows.remove()
    expect(await left()).to.deep.equal([])
    const item = await createDeadLetterStore(db).find(batch.dlqId)
    expect(item).to.include({ bufferId: buffer.bufferId, payloadStored: true })
  })
})
