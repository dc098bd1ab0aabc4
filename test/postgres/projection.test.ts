import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { createProjection } from '../../internal/postgres/projection.ts'
import {
  type DeadLetters,
  type DeliveryFact,
  FencedError,
  type Projection,
} from '../../internal/shard/ports.ts'
import { commitAt } from '../support/commit-names.ts'
import { deadBatch } from '../support/dead-batch.ts'
import { bufferState, insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

const NOON = Date.UTC(2026, 0, 31, 12)
const DAY = 86_400_000

describe('postgres: the projection of deliveries', () => {
  let db: Database
  let projection: Projection
  let letters: DeadLetters
  let buffer: TestBuffer
  let shard = 0

  before(async () => {
    db = connect(await freshDatabase())
    projection = createProjection(db)
    letters = createDeadLetters(db)
  })

  after(() => db.end())

  beforeEach(async () => {
    buffer = await insertBuffer(db, await insertCustomer(db), { dlqPauseThreshold: 10 })
    shard++
  })

  const fence = (epoch = 1) => ({ shard, epoch })
  const fact = (outcome: DeliveryFact['outcome'], given: Partial<DeliveryFact> = {}): DeliveryFact => ({
    outcome,
    bufferUid: buffer.uid,
    at: NOON,
    items: 10,
    attempts: 1,
    timeToFlushMs: 5_000,
    durationMs: 20,
    ...given,
  })
  const days = async () => [
    ...(await db`SELECT day::text, delivered, dead, retries, items_delivered AS items, time_to_flush AS flush,
      delivery_duration AS duration FROM delivery_days WHERE buffer_uid = ${buffer.uid} ORDER BY day`),
  ]
  const writeDeadLetter = () => letters.write(fence(), deadBatch(buffer))
  const count = async () => (await bufferState(db, buffer.uid)).count

  it('adds to the buffer and UTC day, and remembers the position', async () => {
    expect(await projection.position(shard)).to.equal(0)
    await projection.project(fence(), commitAt(2 ** 51), [
      fact('delivered', { timeToFlushMs: 100, durationMs: 10_001 }),
      fact('delivered', { items: 5, attempts: 3, timeToFlushMs: 101, durationMs: 0 }),
      fact('delivered', { at: NOON + DAY, items: 1, timeToFlushMs: 1e9 }),
    ])
    await projection.project(fence(), commitAt(2 ** 51 + 1), [
      fact('dead', { attempts: 5, timeToFlushMs: 99 }),
    ])
    expect(await projection.position(shard)).to.equal(2 ** 51 + 1)
    expect(await days()).to.deep.equal([
      {
        day: '2026-01-31',
        delivered: 2,
        dead: 1,
        retries: 6,
        items: 15,
        flush: [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        duration: [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1],
      },
      {
        day: '2026-02-01',
        delivered: 1,
        dead: 0,
        retries: 0,
        items: 1,
        flush: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        duration: [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
      },
    ])
  })

  it('counts the same facts once, also when two ask at the same time', async () => {
    const facts = [fact('delivered')]
    await Promise.all(Array.from({ length: 6 }, () => projection.project(fence(), commitAt(5), facts)))
    await projection.project(fence(), commitAt(4), facts)
    expect(await days()).to.have.length(1)
    expect((await days())[0]).to.include({ delivered: 1 })
    expect(await projection.position(shard)).to.equal(5)
  })

  it('counts nothing of a stale owner', async () => {
    await letters.raiseEpoch(fence(2))
    const stale = await projection.project(fence(1), commitAt(5), [fact('delivered')]).catch((error) => error)
    expect(stale).to.be.instanceOf(FencedError)
    expect(await days()).to.have.length(0)
    expect(await projection.position(shard)).to.equal(0)
  })

  it('is all or nothing', async () => {
    const wrong = fact('delivered', { bufferUid: 'no-uuid' })
    const failed = await projection
      .project(fence(), commitAt(5), [fact('delivered'), wrong])
      .catch((error) => error)
    expect(failed).to.be.an('error')
    expect(await projection.position(shard)).to.equal(0)
    await projection.project(fence(), commitAt(5), [fact('delivered')])
    expect((await days())[0]).to.include({ delivered: 1 })
  })

  it('takes facts of buffers whose row is gone', async () => {
    const uid = randomUUID()
    await projection.project(fence(), commitAt(1), [
      fact('delivered', { bufferUid: uid }),
      fact('dead', { bufferUid: uid }),
    ])
    expect(await projection.position(shard)).to.equal(1)
  })

  it('shards that project the same buffers do not wait for each other in a ring', async () => {
    const customerId = await insertCustomer(db)
    const buffers = await Promise.all(Array.from({ length: 8 }, () => insertBuffer(db, customerId)))
    const facts = buffers.flatMap(({ uid }) => [
      fact('dead', { bufferUid: uid }),
      fact('delivered', { bufferUid: uid }),
    ])
    const shards = Array.from({ length: 8 }, (_, i) => 1_000 + i)
    for (let round = 1; round <= 5; round++) {
      await Promise.all(
        shards.map((one, i) =>
          projection.project(
            { shard: one, epoch: 1 },
            commitAt(round),
            i % 2 === 0 ? facts : facts.toReversed(),
          ),
        ),
      )
    }
    const [row] = await db`SELECT sum(delivered)::int AS sum FROM delivery_days
      WHERE buffer_uid = ANY (${buffers.map(({ uid }) => uid)})`
    expect(row?.sum).to.equal(8 * 8 * 5)
  })

  describe('consecutive dead batches', () => {
    it('a delivered batch ends the row, dead ones after it begin a new one', async () => {
      for (let i = 0; i < 3; i++) await writeDeadLetter()
      await projection.project(fence(), commitAt(1), [
        fact('dead'),
        fact('delivered'),
        fact('dead'),
        fact('dead'),
      ])
      expect(await count()).to.equal(2)
      await projection.project(fence(), commitAt(2), [fact('delivered')])
      expect(await count()).to.equal(0)
    })

    it('keeps what died after the delivered batch and is not projected yet', async () => {
      await writeDeadLetter()
      await projection.project(fence(), commitAt(1), [fact('dead')])
      expect(await count()).to.equal(1)
      await writeDeadLetter()
      await writeDeadLetter()
      await projection.project(fence(), commitAt(2), [fact('delivered')])
      expect(await count()).to.equal(2)
      await projection.project(fence(), commitAt(3), [fact('dead'), fact('dead')])
      expect(await count()).to.equal(2)
    })

    it('dead batches alone change nothing: the write has counted them', async () => {
      await writeDeadLetter()
      await projection.project(fence(), commitAt(1), [fact('dead')])
      expect(await count()).to.equal(1)
    })

    it('never raises what a user has reset', async () => {
      await writeDeadLetter()
      await writeDeadLetter()
      await db`UPDATE buffers SET consecutive_dlq_count = 0 WHERE uid = ${buffer.uid}`
      await projection.project(fence(), commitAt(1), [fact('delivered'), fact('dead'), fact('dead')])
      expect(await count()).to.equal(0)
      await writeDeadLetter()
      await projection.project(fence(), commitAt(2), [fact('dead')])
      expect(await count()).to.equal(1)
    })

    it('leaves the version of the buffer: no node has to read it again', async () => {
      const { version } = await bufferState(db, buffer.uid)
      await writeDeadLetter()
      await projection.project(fence(), commitAt(1), [fact('dead'), fact('delivered')])
      expect(await bufferState(db, buffer.uid)).to.deep.equal({ enabled: true, count: 0, version })
    })
  })
})
