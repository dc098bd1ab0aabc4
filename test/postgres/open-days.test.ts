/** Days that are closed (migration 030): no number changes by it, whoever reads or writes meanwhile. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { createDayClosing } from '../../internal/analytics/closing.ts'
import type { AnalyticsFilter, DayCounts, DayRange, OpenDays } from '../../internal/analytics/ports.ts'
import type { Scope } from '../../internal/domain/principal.ts'
import { createAnalyticsStore } from '../../internal/postgres/analytics.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createOpenDays } from '../../internal/postgres/open-days.ts'
import { createProjection } from '../../internal/postgres/projection.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { DeliveryFact } from '../../internal/shard/ports.ts'
import { commitAt } from '../support/commit-names.ts'
import { type DayRow, insertDay } from '../support/day-rows.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

const DAY = 86_400_000
const ONE: DayRow = { ingested: 1, delivered: 1, itemsDelivered: 1, timeToFlush: { 2: 1 } }

describe('postgres: the closing of days', () => {
  let url: string
  let db: Database
  let open: OpenDays
  let customerId: string
  let a: TestBuffer
  let b: TestBuffer

  before(async () => {
    url = await freshDatabase()
    db = connect(url)
    open = createOpenDays(db)
  })

  after(() => db.end())

  beforeEach(async () => {
    await db`TRUNCATE ingest_days, delivery_days, closed_days, projections`
    customerId = await insertCustomer(db)
    a = await insertBuffer(db, customerId)
    b = await insertBuffer(db, customerId)
  })

  async function closeAll(limit = 1_000): Promise<number> {
    let all = 0
    for (let closed = 1; closed > 0; all += closed) closed = await open.close(limit)
    return all
  }

  const openRows = async () => {
    const [row] = await db<{ ingest: number; delivery: number }[]>`
      SELECT (SELECT count(*) FROM ingest_days) AS ingest, (SELECT count(*) FROM delivery_days) AS delivery`
    return [row!.ingest, row!.delivery]
  }

  it('moves what lies before yesterday and leaves the rest', async () => {
    for (const ago of [0, 1, 2, 3]) await insertDay(db, a, daysAgo(ago), ONE)
    expect(await closeAll()).to.equal(4)
    expect(await openRows()).to.deep.equal([2, 2])
    const left = await db`SELECT DISTINCT day::text FROM ingest_days ORDER BY day`
    expect(left.map(({ day }) => day)).to.deep.equal([daysAgo(1), daysAgo(0)])
    expect(await closeAll()).to.equal(0)
  })

  it('changes no answer, whatever the scope and the filter', async () => {
    const rival = await insertBuffer(db, await insertCustomer(db))
    const row = { ...ONE, dead: 2, retries: 3, itemsDead: 4, deliveryDuration: { 0: 1, 10: 2 } }
    for (const ago of [0, 1, 2, 5, 40]) {
      await insertDay(db, a, daysAgo(ago), row)
      if (ago !== 5) await insertDay(db, b, daysAgo(ago), { ...row, ingested: 20, timeToFlush: { 11: 5 } })
      await insertDay(db, rival, daysAgo(ago), { ...row, ingested: 300 })
    }
    await db`UPDATE buffers SET deleted_at = now(), deleted_state = 'enabled' WHERE uid = ${b.uid}`
    const asked = questions(a, b, rival)
    const before = await Promise.all(asked.map((question) => ask(db, question)))
    expect(before.map((days) => days.length)).to.deep.equal([5, 4, 4, 5, 4, 0, 0, 5, 4, 0, 5])
    await closeAll(2)
    expect((await openRows())[0]).to.equal(6)
    expect(await Promise.all(asked.map((question) => ask(db, question)))).to.deep.equal(before)
  })

  it('takes at most as many rows of each kind as it is asked to', async () => {
    for (const ago of [3, 4, 5]) await insertDay(db, a, daysAgo(ago), ONE)
    expect(await open.close(2)).to.equal(4)
    expect(await open.close(2)).to.equal(2)
    expect(await open.close(2)).to.equal(0)
  })

  it('adds what comes late for a closed day', async () => {
    await insertDay(db, a, daysAgo(4), ONE)
    await closeAll()
    const projection = createProjection(db)
    await projection.project({ shard: 1, epoch: 1 }, commitAt(5), [
      fact(a, 4),
      { ...fact(a, 4), outcome: 'dead' },
    ])
    const late = { day: daysAgo(4), ingested: 1, delivered: 2, dead: 1, itemsDelivered: 8, itemsDead: 7 }
    expect((await totals(db, customerId))[0]).to.include(late)
    expect(await closeAll()).to.equal(1)
    expect((await totals(db, customerId))[0]).to.include(late)
  })

  it('leaves rows of buffers that nobody knows, and does not come back to them for ever', async () => {
    const unknown = { uid: randomUUID(), customerId: 'unknown' }
    await insertDay(db, unknown, daysAgo(3), ONE)
    await insertDay(db, a, daysAgo(3), ONE)
    expect(await closeAll()).to.equal(2)
    expect(await openRows()).to.deep.equal([1, 1])
  })

  it('removes closed days that nobody can ask for any more, and no other', async () => {
    for (const ago of [2, 89, 90, 99, 101, 400]) await insertDay(db, a, daysAgo(ago), ONE)
    await closeAll()
    const before = await totals(db, customerId)
    // Three levels a day: a customer, a project, a buffer.
    expect([await open.prune(4), await open.prune(4), await open.prune(4)]).to.deep.equal([4, 2, 0])
    expect(await totals(db, customerId)).to.deep.equal(before)
    const left = await db`SELECT DISTINCT day::text FROM closed_days ORDER BY day DESC`
    expect(left.map(({ day }) => day)).to.deep.equal([2, 89, 90, 99].map(daysAgo))
  })

  it('forgets whose a buffer was once its row and all its numbers are gone', async () => {
    const ownersLeft = async () => {
      const rows = await db<{ uid: string }[]>`
        SELECT buffer_uid AS uid FROM buffer_owners WHERE buffer_uid IN ${db([a.uid, b.uid])}`
      return rows.map(({ uid }) => uid).sort()
    }
    await insertDay(db, a, daysAgo(1), ONE)
    expect(await open.prune(10)).to.equal(0)
    await db`DELETE FROM buffers WHERE uid IN ${db([a.uid, b.uid])}`
    // The other one never had any.
    expect(await open.prune(10)).to.equal(1)
    expect(await ownersLeft()).to.deep.equal([a.uid])
    await db`UPDATE ingest_days SET day = day - 3`
    await db`UPDATE delivery_days SET day = day - 3`
    expect(await closeAll()).to.equal(2)
    expect(await open.prune(10)).to.equal(0)
    expect(await ownersLeft()).to.deep.equal([a.uid])
    await db`UPDATE closed_days SET day = day - 200`
    expect(await open.prune(10)).to.equal(3 + 1)
    expect(await ownersLeft()).to.deep.equal([])
  })

  it('loses and doubles nothing while shards project, several nodes close, and somebody reads', async () => {
    const other = connect(url)
    try {
      const projection = createProjection(db)
      for (const ago of [2, 3, 4, 5, 6]) await insertDay(db, b, daysAgo(ago), { ...ONE, ingested: 7 })
      const rounds = 20
      const shards = [1, 2, 3].map(async (shard) => {
        for (let round = 1; round <= rounds; round++) {
          await projection.project({ shard, epoch: 1 }, commitAt(round), [fact(a, 2), fact(b, 3), fact(b, 0)])
        }
      })
      let writing = true
      const closers = [open, createOpenDays(other), createOpenDays(other)].map(async (closer) => {
        while (writing) await closer.close(1)
      })
      const reader = (async () => {
        const seen: number[] = []
        while (writing) seen.push(sum(await totals(other, customerId), 'delivered'))
        return seen
      })()
      await Promise.all(shards)
      writing = false
      await Promise.all(closers)
      const seen = await reader
      expect(seen, 'a read never sees less than one before it').to.deep.equal(seen.toSorted((x, y) => x - y))
      await closeAll()
      const days = await totals(db, customerId)
      expect(sum(days, 'delivered')).to.equal(5 + 3 * 3 * rounds)
      expect(sum(days, 'ingested')).to.equal(5 * 7)
      expect(sum(days, 'itemsDelivered')).to.equal(5 + 3 * 3 * rounds * 7)
      const flushes = days.flatMap(({ timeToFlush }) => timeToFlush).reduce((all, count) => all + count, 0)
      expect(flushes).to.equal(5 + 3 * 3 * rounds)
    } finally {
      await other.end()
    }
  })

  it('a node closes all that there is when it starts, tells of a failure, and goes on in the next round', async () => {
    const problems: unknown[] = []
    const rounds: (() => void)[] = []
    let failing = true
    const closing = createDayClosing({
      openDays: {
        close: (limit) => (failing ? Promise.reject(new Error('away')) : open.close(limit)),
        prune: open.prune,
      },
      clock: {
        ...systemClock(),
        after: (_ms, round) => {
          rounds.push(round)
          return () => {}
        },
      },
      onProblem: (error) => problems.push(error),
    })
    for (const ago of [2, 300]) await insertDay(db, a, daysAgo(ago), ONE)
    closing.start()
    await eventually(() => rounds.length === 1)
    expect(problems.map(String)).to.deep.equal(['Error: away'])
    expect(await openRows()).to.deep.equal([2, 2])
    failing = false
    rounds[0]!()
    await eventually(() => rounds.length === 2)
    expect(await openRows()).to.deep.equal([0, 0])
    expect((await db`SELECT DISTINCT day::text FROM closed_days`).map(({ day }) => day)).to.deep.equal([
      daysAgo(2),
    ])
    await closing.stop()
  })
})

type Question = [Scope, AnalyticsFilter]

function questions(a: TestBuffer, b: TestBuffer, rival: TestBuffer): Question[] {
  const all: Scope = { customerId: a.customerId, projectIds: null }
  const scoped: Scope = { customerId: a.customerId, projectIds: [b.projectId] }
  return [
    [all, {}],
    [all, { projectId: b.projectId }],
    [all, { bufferId: b.bufferId }],
    [all, { projectId: a.projectId, bufferId: a.bufferId }],
    [scoped, {}],
    [all, { projectId: rival.projectId }],
    [scoped, { bufferId: a.bufferId }],
    [{ customerId: a.customerId, projectIds: [a.projectId, b.projectId] }, {}],
    [scoped, { projectId: b.projectId, bufferId: b.bufferId }],
    [scoped, { projectId: a.projectId }],
    [{ customerId: rival.customerId, projectIds: null }, {}],
  ]
}

/** Of the last 90 days. */
function ask(db: Database, [scope, filter]: Question): Promise<DayCounts[]> {
  const range: DayRange = { from: daysAgo(89), to: daysAgo(0) }
  return createAnalyticsStore(db).days(scope, filter, range)
}

function totals(db: Database, customerId: string): Promise<DayCounts[]> {
  return ask(db, [{ customerId, projectIds: null }, {}])
}

function sum(days: readonly DayCounts[], of: 'ingested' | 'delivered' | 'itemsDelivered'): number {
  return days.reduce((all, day) => all + day[of], 0)
}

function daysAgo(days: number): string {
  return new Date(Date.now() - days * DAY).toISOString().slice(0, 10)
}

function fact({ uid }: TestBuffer, ago: number): DeliveryFact {
  return {
    outcome: 'delivered',
    bufferUid: uid,
    at: Date.now() - ago * DAY,
    items: 7,
    attempts: 1,
    timeToFlushMs: 20,
    durationMs: 20,
  }
}
