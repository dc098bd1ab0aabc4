/** The records of the audit on the real Postgres: what is stored, the pages of a list, and what goes when it is old. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import type { AuditStore } from '../../internal/audit/ports.ts'
import { createAuditReading } from '../../internal/audit/reading.ts'
import { createAuditSweep } from '../../internal/audit/sweep.ts'
import { type AuditRecord, boundedText } from '../../internal/domain/audit.ts'
import type { Principal } from '../../internal/domain/principal.ts'
import { createAuditStore } from '../../internal/postgres/audit.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { auditRecord } from '../audit/record.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { eventually } from '../support/eventually.ts'
import { watchStatements } from '../support/plans.ts'
import { freshDatabase } from '../support/servers.ts'

const DAY_MS = 86_400_000
const acme: Principal = { customerId: 'acme', role: 'owner', via: 'key', keyId: 'k1' }

describe('postgres: records of the audit', function () {
  this.timeout(120_000)
  let url: string
  let db: Database
  let store: AuditStore

  before(async () => {
    url = await freshDatabase()
    db = connect(url, { statementTimeoutMs: 0 })
    store = createAuditStore(db)
  })
  after(() => db.end())
  beforeEach(() => db`TRUNCATE audit_records`)

  const list = (query: { since?: number; until?: number; cursor?: string; limit?: number } = {}) =>
    createAuditReading({ store }).list(acme, { limit: 100, ...query })

  /** Ids of records at these moments, in this order. */
  async function insertAt(moments: readonly number[], more: Partial<AuditRecord> = {}): Promise<string[]> {
    const records = moments.map((createdAt) => auditRecord({ createdAt, ...more }))
    await store.insert(records)
    return records.map(({ auditId }) => auditId)
  }

  const idsOf = ({ records }: { records: readonly AuditRecord[] }) => records.map(({ auditId }) => auditId)

  it('are answered as they were given, each kind of them', async () => {
    const records = [
      auditRecord({ createdAt: 3, from: {}, target: { bufferId: 'orders', cloneId: 'orders-copy' } }),
      auditRecord({
        createdAt: 2,
        actor: { type: 'token', issuer: 'https://id.example', subject: 'ada' },
        from: { address: '2001:db8::1', forwardedFor: '10.0.0.1, 192.0.2.9' },
      }),
      auditRecord({
        createdAt: 1,
        event: 'left_out',
        actor: { type: 'service' },
        method: null,
        route: null,
        target: {},
        from: {},
        status: null,
        count: 7,
      }),
    ]
    await store.insert(records)
    expect(await list()).to.deep.equal({ records, nextCursor: null })
  })

  it('take any text that a stranger sends, once it is bounded', async () => {
    const nasty = [
      'a\u0000b',
      '\ud800',
      `${'x'.repeat(199)}\u{1f600}`,
      '\u001b[2J',
      '"\\\'; DROP TABLE',
      '\u2028',
    ]
    const records = nasty.map((text, n) =>
      auditRecord({ createdAt: n, from: { forwardedFor: boundedText(text, 200) } }),
    )
    await store.insert(records)
    expect((await list()).records.map(({ from }) => from.forwardedFor).reverse()).to.deep.equal([
      'a\ufffdb',
      '\ufffd',
      `${'x'.repeat(199)}\ufffd`,
      '\ufffd[2J',
      '"\\\'; DROP TABLE',
      '\u2028',
    ])
  })

  it('are stored once, however often they are sent', async () => {
    const [first, second] = [auditRecord(), auditRecord()]
    await store.insert([first])
    await store.insert([first, second])
    expect(await db`SELECT FROM audit_records`).to.have.length(2)
  })

  it('are paged from the newest to the oldest, also those of one moment', async () => {
    const ids = await insertAt([1, 2, 2, 2, 2, 2, 3])
    const seen: string[] = []
    let cursor: string | null | undefined
    for (let page = 0; cursor !== null; page++) {
      expect(page).to.be.below(5)
      const answer = await list({ limit: 2, ...(cursor !== undefined && { cursor }) })
      seen.push(...idsOf(answer))
      cursor = answer.nextCursor
    }
    expect(seen).to.have.members(ids)
    expect(seen).to.have.length(7)
    expect([seen[0], seen[6]]).to.deep.equal([ids[6], ids[0]])
  })

  it('stay where they are in the pages while newer ones come', async () => {
    const ids = await insertAt([1, 2, 3, 4])
    const first = await list({ limit: 2 })
    expect(idsOf(first)).to.deep.equal([ids[3], ids[2]])
    await insertAt([5, 6, 4])
    const second = await list({ limit: 2, cursor: first.nextCursor! })
    expect(idsOf(second)).to.deep.equal([ids[1], ids[0]])
    expect(second.nextCursor).to.equal(null)
  })

  it('have another page only where there is one', async () => {
    await insertAt([1, 2])
    expect((await list({ limit: 2 })).nextCursor).to.equal(null)
    expect((await list({ limit: 1 })).nextCursor).to.be.a('string')
  })

  it('are those of a range: its beginning belongs to it, its end does not', async () => {
    const ids = await insertAt([9, 10, 19, 20])
    expect(idsOf(await list({ since: 10, until: 20 }))).to.deep.equal([ids[2], ids[1]])
    expect(idsOf(await list({ since: 20, until: 10 }))).to.deep.equal([])
    const { nextCursor } = await list({ limit: 1 })
    expect(idsOf(await list({ since: 10, until: 20, cursor: nextCursor! }))).to.deep.equal([ids[2], ids[1]])
  })

  it('of another customer are not answered', async () => {
    await insertAt([1, 2], { customerId: 'rival' })
    const [mine] = await insertAt([1])
    expect(idsOf(await list())).to.deep.equal([mine])
  })

  it('older than so many days go, many at a time, and those of the last day stay', async () => {
    const clock = new ManualClock()
    clock.advance(100 * DAY_MS)
    const cut = clock.now() - 90 * DAY_MS
    await db`INSERT INTO audit_records (customer_id, created_at, audit_id, event, actor, target, origin, count)
      SELECT 'c' || n % 7, ${cut}::bigint - n, gen_random_uuid(), 'change', '{}', '{}', '{}', 1
      FROM generate_series(1, 2500) n`
    const kept = await insertAt([cut, cut + 1])
    const removed: number[] = []
    const problems: unknown[] = []
    const sweep = createAuditSweep({
      store,
      days: 90,
      clock,
      onRemoved: (records) => removed.push(records),
      onProblem: (error) => problems.push(error),
    })
    sweep.start()
    await eventually(() => clock.pending === 1)
    await sweep.stop()
    expect([removed, problems]).to.deep.equal([[2_500], []])
    expect((await db`SELECT audit_id FROM audit_records`).map((row) => row.audit_id)).to.have.members(kept)
  })

  it('are removed by several at once without waiting for each other', async () => {
    await insertAt(Array.from({ length: 300 }, (_, n) => n))
    await db.begin(async (transaction) => {
      await transaction`SELECT FROM audit_records WHERE created_at < 100 FOR UPDATE`
      expect(await store.removeOlder(1_000, 1_000)).to.equal(200)
    })
    expect(await db`SELECT FROM audit_records`).to.have.length(100)
  })

  it('cost a list no more than its page, in a table of others and of years', async () => {
    await db`INSERT INTO audit_records (customer_id, created_at, audit_id, event, actor, target, origin, count)
      SELECT 'c' || n % 50, n, gen_random_uuid(), 'change', '{}', '{}', '{}', 1 FROM generate_series(1, 50000) n`
    await db`INSERT INTO audit_records (customer_id, created_at, audit_id, event, actor, target, origin, count)
      SELECT 'acme', n, gen_random_uuid(), 'change', '{}', '{}', '{}', 1 FROM generate_series(1, 20000) n`
    await db`VACUUM ANALYZE audit_records`
    const watched = watchStatements(url)
    try {
      const reading = createAuditReading({ store: createAuditStore(watched.db) })
      for (const query of [{}, { since: 5_000, until: 9_000 }, { cursor: `9000_${randomUUID()}` }]) {
        expect((await reading.list(acme, { limit: 50, ...query })).records).to.have.length(50)
        for (const { mode, rows, whole } of await watched.readings()) {
          expect(whole, mode).to.deep.equal([])
          expect(rows('audit_records'), `${mode} ${JSON.stringify(query)}`).to.be.within(50, 51)
        }
      }
    } finally {
      await watched.end()
    }
    const plan = await db`EXPLAIN SELECT ctid FROM audit_records WHERE created_at < 10
      ORDER BY created_at LIMIT 1000 FOR UPDATE SKIP LOCKED`
    expect(JSON.stringify(plan), 'of the sweep').to.include('audit_records_by_age')
  })
})
