/**
 * What the lists of the management API touch at 10,000 buffers and 100,000 dead letters of one customer, among
 * those of many others: what they answer and no more, however large the tables are.
 */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { Scope } from '../../internal/domain/principal.ts'
import { createApiKeyRows, createApiKeyStore } from '../../internal/postgres/api-keys.ts'
import { createBufferRows, createBufferStore } from '../../internal/postgres/buffers.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createDeadLetterStore } from '../../internal/postgres/dlq-items.ts'
import { createProjectStore } from '../../internal/postgres/projects.ts'
import { createSecretBox } from '../../internal/postgres/secrets.ts'
import { type WatchedDatabase, watchStatements } from '../support/plans.ts'
import { freshDatabase } from '../support/servers.ts'

const PROJECTS = 20
const BUFFERS = 10_000
const BUFFERS_A_PROJECT = BUFFERS / PROJECTS
const DEAD = 100_000
/** API keys of one customer; all but ten are revoked. */
const KEYS = 100
/** Customers with one project, one dead letter and two keys each. */
const OTHERS = 2_000
const BUFFERS_OF_OTHERS = 10

const all: Scope = { customerId: 'large', projectIds: null }
const scoped = (...projectIds: string[]): Scope => ({ customerId: 'large', projectIds })

describe('postgres: plans of lists', function () {
  this.timeout(120_000)
  let watched: WatchedDatabase

  before(async () => {
    const url = await freshDatabase()
    const db = connect(url, { max: 1, statementTimeoutMs: 0 })
    await fill(db)
    await db.end()
    watched = watchStatements(url)
  })

  after(() => watched.end())

  /** The statement of `ask` answers `answered` rows and reads at most `atMost` of the table, by index. */
  async function expectRead(
    table: string,
    ask: Promise<readonly unknown[]>,
    { answered, atMost = answered }: { answered: number; atMost?: number },
  ): Promise<void> {
    expect(await ask, 'answered').to.have.length(answered)
    for (const { mode, rows, whole } of await watched.readings()) {
      expect(whole, `read from end to end by the ${mode} plan`).to.deep.equal([])
      expect(rows(table), `rows read by the ${mode} plan`).to.be.within(answered, atMost)
    }
  }

  describe('buffers', () => {
    const store = () =>
      createBufferStore(watched.db, createSecretBox([{ id: 'test', key: Buffer.alloc(32) }]))
    const rows = () => createBufferRows(watched.db, createSecretBox([{ id: 'test', key: Buffer.alloc(32) }]))

    it('of a customer: its own that are not deleted', async () => {
      await expectRead('buffers', store().list(all), { answered: BUFFERS })
      await expectRead('buffers', store().list({ customerId: 'other-7', projectIds: null }), {
        answered: BUFFERS_OF_OTHERS,
      })
    })

    it('of a project', async () => {
      await expectRead('buffers', store().list(all, 'large-p3'), { answered: BUFFERS_A_PROJECT })
    })

    it('of a project-scoped key: those of its projects', async () => {
      const ofTwo = { answered: 2 * BUFFERS_A_PROJECT }
      await expectRead('buffers', store().list(scoped('large-p3', 'large-p4')), ofTwo)
    })

    it('of a project within the scope of a key, and of one beyond it', async () => {
      const within = { answered: BUFFERS_A_PROJECT }
      await expectRead('buffers', store().list(scoped('large-p3', 'large-p4'), 'large-p3'), within)
      await expectRead('buffers', store().list(scoped('large-p4'), 'large-p3'), { answered: 0 })
    })

    it('by id or uid: one', async () => {
      for (const scope of [all, scoped('large-p7')]) {
        await expectRead('buffers', found(store().find(scope, 'large-7')), { answered: 1 })
      }
      const records = await rows().byIds(['large-7', 'large-8', 'gone-7'])
      await expectRead('buffers', Promise.resolve([...records]), { answered: 2 })
      const uids = [...records.values()].map((record) => (record as { uid: string }).uid)
      await expectRead('buffers', rows().byUids(uids).then(entriesOf), { answered: 2 })
    })
  })

  describe('dead letters', () => {
    const list = (scope: Scope, limit: number, bufferId?: string) =>
      createDeadLetterStore(watched.db).list(scope, { limit, bufferId })

    for (const limit of [1, 100, 500]) {
      it(`the newest ${limit} of a customer`, async () => {
        await expectRead('dlq_items', list(all, limit), { answered: limit })
      })

      it(`the newest ${limit} of a buffer`, async () => {
        await expectRead('dlq_items', list(all, limit, 'large-0'), { answered: limit })
        await expectRead('dlq_items', list(scoped('large-p0', 'large-p1'), limit, 'large-0'), {
          answered: limit,
        })
      })

      it(`the newest ${limit} of a project-scoped key: as many of each project at most`, async () => {
        for (const projects of [1, 2, PROJECTS]) {
          const scope = scoped(...Array.from({ length: projects }, (_, n) => `large-p${n}`))
          await expectRead('dlq_items', list(scope, limit), { answered: limit, atMost: projects * limit })
        }
      })
    }

    it('a buffer or customer with few of them does not read those of others', async () => {
      await expectRead('dlq_items', list(all, 500, 'large-1'), { answered: DEAD / 2 / BUFFERS })
      await expectRead('dlq_items', list({ customerId: 'other-7', projectIds: null }, 500), { answered: 1 })
      await expectRead('dlq_items', list({ customerId: 'other-8', projectIds: ['other-8-p'] }, 500), {
        answered: 1,
      })
      await expectRead('dlq_items', list(all, 500, 'none'), { answered: 0 })
    })

    it('one item, and its body', async () => {
      const store = createDeadLetterStore(watched.db)
      await expectRead('dlq_items', found(store.find('dead-77')), { answered: 1 })
      await expectRead('dlq_items', found(store.body('dead-77')), { answered: 1 })
    })

    it('whether a buffer is there reads one row', async () => {
      expect(await createDeadLetterStore(watched.db).hasBuffer(all, 'large-1')).to.equal(true)
      for (const { rows, whole } of await watched.readings()) {
        expect([rows('buffers'), whole]).to.deep.equal([1, []])
      }
    })
  })

  describe('API keys', () => {
    const list = (scope: Scope) => createApiKeyStore(watched.db).list(scope)

    it('of a customer', async () => {
      await expectRead('api_keys', list(all), { answered: KEYS })
      await expectRead('api_keys', list({ customerId: 'other-7', projectIds: null }), { answered: 2 })
    })

    it('of a project-scoped key: it reads those of its customer', async () => {
      await expectRead('api_keys', list(scoped('large-p3')), { answered: KEYS / PROJECTS, atMost: KEYS })
    })

    it('by hash: one', async () => {
      const [hash] = await watched.db<{ hash: string }[]>`
        SELECT encode(hash, 'hex') AS hash FROM api_keys WHERE key_id = 'large-key-7'`
      const keys = createApiKeyRows(watched.db).byHashes([hash!.hash])
      await expectRead('api_keys', keys.then(entriesOf), { answered: 1 })
    })
  })

  describe('projects', () => {
    const list = (scope: Scope) => createProjectStore(watched.db).list(scope)

    it('of a customer, or of a project-scoped key', async () => {
      await expectRead('projects', list(all), { answered: PROJECTS })
      await expectRead('projects', list(scoped('large-p3', 'large-p4')), { answered: 2, atMost: PROJECTS })
      await expectRead('projects', list({ customerId: 'other-7', projectIds: null }), { answered: 1 })
    })
  })
})

function found(row: Promise<unknown>): Promise<unknown[]> {
  return row.then((value) => (value === undefined ? [] : [value]))
}

function entriesOf(map: ReadonlyMap<string, unknown>): unknown[] {
  return [...map]
}

/** Half of the dead letters are those of one buffer, `large-0`; of every buffer there was an older one, deleted. */
async function fill(db: Database): Promise<void> {
  await db`INSERT INTO customers (customer_id, name) SELECT 'other-' || n, 'Test' FROM generate_series(1, ${OTHERS}::int) n`
  await db`INSERT INTO customers (customer_id, name) VALUES ('large', 'Test')`
  await db`INSERT INTO projects (project_id, customer_id, name)
    SELECT customer_id || '-p' || CASE customer_id WHEN 'large' THEN n::text ELSE '' END, customer_id, 'Test'
    FROM customers, generate_series(0, ${PROJECTS - 1}::int) n WHERE customer_id = 'large' OR n = 0`
  await fillBuffers(db)
  await fillDeadLetters(db)
  await db`INSERT INTO api_keys (key_id, customer_id, name, hash, key_prefix, role, project_ids, revoked_at)
    SELECT customer_id || '-key-' || n, customer_id, 'Test', sha256((customer_id || n)::bytea), 'svk_0000', 'member',
      ARRAY[customer_id || '-p' || n % ${PROJECTS}], CASE WHEN n > 10 THEN now() END
    FROM customers, generate_series(1, ${KEYS}::int) n WHERE customer_id = 'large' OR n <= 2`
  await db`VACUUM ANALYZE`
}

async function fillBuffers(db: Database): Promise<void> {
  const config = db.json({ name: 'Test', delivery: { url: 'http://127.0.0.1/' } })
  await db`INSERT INTO buffers (uid, buffer_id, customer_id, project_id, config, created_at)
    SELECT gen_random_uuid(), 'large-' || n, 'large', 'large-p' || n % ${PROJECTS}, ${config}, now() - n * interval '1 minute'
    FROM generate_series(0, ${BUFFERS - 1}::int) n`
  await db`INSERT INTO buffers (uid, buffer_id, customer_id, project_id, config, deleted_at, deleted_state)
    SELECT gen_random_uuid(), 'gone-' || n, 'large', 'large-p' || n % ${PROJECTS}, ${config}, now(), 'enabled'
    FROM generate_series(0, ${BUFFERS - 1}::int) n`
  await db`INSERT INTO buffers (uid, buffer_id, customer_id, project_id, config)
    SELECT gen_random_uuid(), 'other-' || n || '-' || m, 'other-' || n, 'other-' || n || '-p', ${config}
    FROM generate_series(1, ${OTHERS}::int) n, generate_series(1, ${BUFFERS_OF_OTHERS}::int) m`
}

async function fillDeadLetters(db: Database): Promise<void> {
  const insert = (rows: ReturnType<Database>) => db`
    INSERT INTO dlq_items (dlq_id, customer_id, project_id, buffer_id, buffer_uid, group_id, version, group_key,
      message_ids, first_payload_preview, reason, last_error, last_status_code, attempt, item_count, segment,
      first_item_at, last_activity_at, payload_bytes, body, body_sha256, created_at)
    SELECT dlq_id, customer_id, project_id, buffer_id, gen_random_uuid(), dlq_id, 1, '"key"', '["message"]', '"{}"',
      'max_retries_exceeded', 'HTTP 500', 500, 2, 1, 0, 1, 2, 2, '{}', sha256('{}'), created_at
    FROM (${rows}) AS dead`
  await insert(db`
    SELECT 'dead-' || n AS dlq_id, 'large' AS customer_id, 'large-p' || buffer % ${PROJECTS} AS project_id,
      'large-' || buffer AS buffer_id, n AS created_at
    FROM generate_series(1, ${DEAD}::int) n,
      LATERAL (SELECT CASE n % 2 WHEN 0 THEN 0 ELSE n / 2 % ${BUFFERS} END AS buffer) AS of`)
  await insert(db`
    SELECT 'other-dead-' || n AS dlq_id, 'other-' || n AS customer_id, 'other-' || n || '-p' AS project_id,
      'other-' || n || '-1' AS buffer_id, n AS created_at
    FROM generate_series(1, ${OTHERS}::int) n`)
}
