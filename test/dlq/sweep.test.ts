/** Retention and quota of the dead letter queue, on the real Postgres, and in the program that does it. */
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { createSuspensions } from '../../internal/accounts/suspensions.ts'
import { createDeadLetterSweep, type DeadLetterLimits } from '../../internal/dlq/sweep.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { createRetryStore } from '../../internal/postgres/dlq-retries.ts'
import { createExpiredDeadLetters } from '../../internal/postgres/expired-dead-letters.ts'
import { createSecretBox } from '../../internal/postgres/secrets.ts'
import { createSuspensionStore } from '../../internal/postgres/suspensions.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { Cluster } from '../support/cluster.ts'
import { deadBatch } from '../support/dead-batch.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

const DAY_MS = 86_400_000
const FENCE = { shard: 0, epoch: 1 }

/** Dead letters of these ages, days. */
async function writeDeadLetter(
  db: Database,
  buffer: TestBuffer,
  ages: readonly number[],
  now: number,
): Promise<string[]> {
  const letters = createDeadLetters(db)
  await letters.raiseEpoch(FENCE)
  const batches = ages.map((age) => deadBatch(buffer, { createdAt: now - age * DAY_MS }))
  for (const batch of batches) await letters.write(FENCE, batch)
  return batches.map(({ dlqId }) => dlqId)
}

async function idsIn(db: Database): Promise<string[]> {
  const rows = await db<{ dlq_id: string }[]>`SELECT dlq_id FROM dlq_items`
  return rows.map((row) => row.dlq_id)
}

describe('dead letters that may go', () => {
  let db: Database
  let buffer: TestBuffer
  let clock: ManualClock
  let removed: { old: number; overQuota: number }[]
  let abandoned: number[]
  let problems: unknown[]

  before(async () => {
    db = connect(await freshDatabase())
  })
  after(() => db.end())

  beforeEach(async () => {
    await db`TRUNCATE dlq_items, dlq_tombstones, dlq_bodies CASCADE`
    buffer = await insertBuffer(db, await insertCustomer(db))
    clock = new ManualClock()
    removed = []
    abandoned = []
    problems = []
  })

  /** One round. */
  async function sweep(limits: DeadLetterLimits, expired = createExpiredDeadLetters(db)): Promise<void> {
    const rounds = createDeadLetterSweep({
      expired,
      limits,
      clock,
      onRemoved: (counts) => removed.push(counts),
      onAbandoned: (uploads) => abandoned.push(uploads),
      onProblem: (error) => problems.push(error),
    })
    rounds.start()
    await eventually(() => clock.pending === 1)
    await rounds.stop()
  }

  it('are those older than the retention, and they leave their tombstones', async () => {
    const [old, older, young] = await writeDeadLetter(db, buffer, [31, 400, 29], clock.now())
    await sweep({ retentionDays: 30 })
    expect(await idsIn(db)).to.deep.equal([young])
    expect(removed).to.deep.equal([{ old: 2, overQuota: 0 }])
    expect([old, older]).to.have.length((await db`SELECT FROM dlq_tombstones`).length)
  })

  it('are not those of a suspended customer, and after its resume not for a whole retention', async () => {
    const other = await insertBuffer(db, await insertCustomer(db))
    const held = await writeDeadLetter(db, buffer, [31, 400], clock.now())
    await writeDeadLetter(db, other, [31], clock.now())
    const suspensions = createSuspensions(createSuspensionStore(db))
    await suspensions.set(buffer.customerId, true)
    await sweep({ retentionDays: 30 })
    expect(await idsIn(db)).to.have.members(held)
    await suspensions.set(buffer.customerId, false)
    const resumed = (days: number) => db`
      UPDATE suspensions SET resumed_at = to_timestamp(${clock.now() / 1000 - days * 86_400}::float8)`
    await resumed(29)
    await sweep({ retentionDays: 30 })
    expect(await idsIn(db)).to.have.members(held)
    await resumed(31)
    await sweep({ retentionDays: 30 })
    expect(await idsIn(db)).to.deep.equal([])
  })

  it('are those beyond the quota of their customer, the oldest', async () => {
    const mine = await writeDeadLetter(db, buffer, [1, 3, 2, 5, 4], clock.now())
    const other = await insertBuffer(db, await insertCustomer(db))
    const theirs = await writeDeadLetter(db, other, [300, 200, 100], clock.now())
    await sweep({ quota: 3 })
    expect(await idsIn(db)).to.have.members([mine[0], mine[1], mine[2], ...theirs])
    expect(removed).to.deep.equal([{ old: 0, overQuota: 2 }])
  })

  it('are not those that are tried again at this moment', async () => {
    const [tried] = await writeDeadLetter(db, buffer, [40, 41], clock.now())
    const box = createSecretBox([{ id: 'test', key: Buffer.alloc(32) }])
    const claim = await createRetryStore(db, box).claim(tried!, 60_000)
    expect(claim).to.include.keys('retryId')
    await sweep({ retentionDays: 30 })
    expect(await idsIn(db)).to.deep.equal([tried])
    await sweep({ quota: 1 })
    expect(await idsIn(db)).to.deep.equal([tried])
  })

  it('are not asked for without limits, but what was uploaded and never written goes', async () => {
    const [old] = await writeDeadLetter(db, buffer, [4_000], clock.now())
    await createDeadLetters(db).upload(FENCE, deadBatch(buffer, { body: Buffer.alloc(100_000) }))
    await sweep({})
    expect(abandoned).to.deep.equal([])
    await db`UPDATE dlq_bodies SET touched_at = touched_at - interval '61 minutes'`
    await sweep({})
    expect([abandoned, removed, await idsIn(db)]).to.deep.equal([[1], [], [old]])
  })

  it('go a few at a time when they are large', async () => {
    const megabytes = 1024 * 1024
    const letters = createDeadLetters(db)
    for (let n = 0; n < 10; n++) {
      const size = { payloadBytes: 16 * megabytes, createdAt: clock.now() - 40 * DAY_MS }
      await letters.write(FENCE, deadBatch(buffer, size))
    }
    const expired = createExpiredDeadLetters(db)
    expect(await expired.removeOlder(clock.now(), 200)).to.equal(4)
    expect(await expired.removeBeyond(5, 200)).to.equal(1)
    await sweep({ quota: 0 })
    expect([removed, await idsIn(db)]).to.deep.equal([[{ old: 0, overQuota: 5 }], []])
  })

  it('go many at a time, round by round, and what fails is tried in the next', async () => {
    const ages = Array.from({ length: 450 }, (_, day) => 31 + day)
    await writeDeadLetter(db, buffer, ages, clock.now())
    const away = {
      removeOlder: () => Promise.reject(new Error('away')),
      removeBeyond: async () => 0,
      removeAbandoned: async () => 0,
    }
    await sweep({ retentionDays: 30 }, away)
    expect([problems.length, removed.length, (await idsIn(db)).length]).to.deep.equal([1, 0, 450])
    await sweep({ retentionDays: 30, quota: 10 })
    expect([removed, (await idsIn(db)).length]).to.deep.equal([[{ old: 450, overQuota: 0 }], 0])
  })
})

describe('an admin with a retention of dead letters', function () {
  this.timeout(120_000)

  it('removes them when it starts, and without one it does not', async () => {
    const url = await freshDatabase()
    const db = connect(url)
    const buffer = await insertBuffer(db, await insertCustomer(db))
    const [old, young] = await writeDeadLetter(db, buffer, [3, 1], Date.now())
    const cluster = await Cluster.create({ PENSTOCK_DATABASE_URL: url })
    try {
      const plain = await cluster.start('admin')
      await plain.stop()
      expect(await idsIn(db)).to.have.members([old, young])
      const limited = await cluster.start('admin', {
        PENSTOCK_DLQ_RETENTION_DAYS: '2',
        PENSTOCK_DLQ_QUOTA: '5',
      })
      await eventually(async () => expect(await idsIn(db)).to.deep.equal([young]))
      await limited.stop()
      expect(limited.service.output()).to.include('dead letters removed')
    } finally {
      await cluster.stop()
      await db.end()
    }
  })
})
