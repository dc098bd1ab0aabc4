/** Secrets move to another key on the real Postgres, beside writers, and what cannot move is told. */
import { randomBytes, randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import type { BufferStore } from '../../internal/buffers/ports.ts'
import { configOf, parseBufferCreate } from '../../internal/domain/buffer.ts'
import { required } from '../../internal/domain/errors.ts'
import type { Buffer } from '../../internal/domain/model.ts'
import { createBufferStore } from '../../internal/postgres/buffers.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { otherRows, rekey } from '../../internal/postgres/rekey.ts'
import { rowsWithoutKey } from '../../internal/postgres/secret-keys.ts'
import { createSecretBox, type SecretBox, type SecretKey } from '../../internal/postgres/secrets.ts'
import { bufferBody } from '../support/accounts.ts'
import { eventually } from '../support/eventually.ts'
import { insertCustomer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

const key = (id: string): SecretKey => ({ id, key: randomBytes(32) })
const OLD = key('old')
const FRESH = key('fresh')
const LOST = key('lost')
const SECRETS = {
  delivery: {
    url: 'https://example.com/hook',
    signing: { secret: 'sign' },
    headers: { authorization: 'Bearer x', 'x-other': 'y' },
  },
  sourceVerification: { enabled: true, signingSecret: 'source', previousSecret: 'before' },
}

describe('secrets that move to another key', () => {
  let db: Database
  let customerId: string
  const oldBox = createSecretBox([OLD])
  const freshBox = createSecretBox([FRESH])
  const both = createSecretBox([FRESH, OLD])
  const quiet = { onProgress: () => {} }

  before(async () => {
    db = connect(await freshDatabase(), { max: 6 })
  })
  after(() => db.end())
  beforeEach(async () => {
    await db`TRUNCATE buffers CASCADE`
    customerId = await insertCustomer(db)
    await db`INSERT INTO projects (project_id, customer_id, name) VALUES (${`p-${customerId}`}, ${customerId}, 'P')`
  })

  async function insert(box: SecretBox, more: object = SECRETS): Promise<{ bufferId: string; uid: string }> {
    const ids = { bufferId: randomUUID(), projectId: `p-${customerId}` }
    const { config } = required(parseBufferCreate(bufferBody(ids.bufferId, ids.projectId, more)))
    const uid = randomUUID()
    await createBufferStore(db, box).insert({ ...ids, customerId, uid, config })
    return { bufferId: ids.bufferId, uid }
  }

  const storeOf = (box: SecretBox): BufferStore => createBufferStore(db, box)
  const scope = () => ({ customerId, projectIds: null })
  const read = async (box: SecretBox, bufferId: string) => (await storeOf(box).find(scope(), bufferId))!

  it('are all readable by the new key alone, and nothing else of their rows changes', async () => {
    const made = [await insert(oldBox), await insert(both), await insert(oldBox), await insert(oldBox, {})]
    const deleted = await insert(oldBox)
    await storeOf(oldBox).softDelete(scope(), deleted.bufferId)
    const before = await Promise.all(made.map(({ bufferId }) => read(both, bufferId)))
    const progress: number[] = []
    const done = await rekey(db, both, { rowsAtOnce: 2, onProgress: (rows) => progress.push(rows) })
    expect(done).to.deep.equal({ rows: 3, left: [] })
    expect(progress).to.deep.equal([2, 3])
    for (const [index, { bufferId }] of made.entries()) {
      const now = await read(freshBox, bufferId)
      const moved = index === 0 || index === 2
      expect(now).to.deep.equal({ ...before[index], version: moved ? 2 : 1 })
    }
    const [row] = await db<{ keys: string }[]>`
      SELECT secret_keys(config) AS keys FROM buffers WHERE uid = ${deleted.uid}`
    expect(row!.keys, 'also of a deleted buffer').to.equal('fresh')
    expect(await rekey(db, both, quiet)).to.deep.equal({ rows: 0, left: [] })
  })

  it('are moved wherever they stand, also when a row has only this one', async () => {
    const places = [
      { sourceVerification: { signingSecret: 'present' } },
      { sourceVerification: { previousSecret: 'before' } },
      { delivery: { url: 'https://example.com/hook', signing: { secret: 'sign' } } },
      { delivery: { url: 'https://example.com/hook', headers: { 'x-token': 'token' } } },
    ]
    for (const place of places) {
      const { bufferId } = await insert(oldBox, place)
      const before = await read(oldBox, bufferId)
      expect(await rekey(db, both, quiet), JSON.stringify(place)).to.deep.equal({ rows: 1, left: [] })
      expect((await read(freshBox, bufferId)).buffer).to.deep.equal(before.buffer)
    }
  })

  it('go on where a run was cut off', async () => {
    for (let n = 0; n < 5; n++) await insert(oldBox)
    const cut = rekey(db, both, {
      rowsAtOnce: 2,
      onProgress: () => {
        throw new Error('cut off')
      },
    })
    expect(await cut.catch(String)).to.include('cut off')
    expect(await otherRows(db, both)).to.deep.equal([{ table: 'buffers', keyIds: ['old'], rows: 3 }])
    expect(await rekey(db, both, quiet)).to.deep.equal({ rows: 3, left: [] })
  })

  it('stay what a node writes meanwhile, with the key that it has', async () => {
    const made = await Promise.all(Array.from({ length: 20 }, () => insert(oldBox)))
    const node = storeOf(createSecretBox([OLD, FRESH]))
    const named = (name: string) => (stored: Buffer) => ({
      ...configOf(stored),
      name,
      delivery: { ...stored.delivery, signing: { ...stored.delivery.signing!, secret: name } },
    })
    const changes = made.map(({ bufferId }, n) => node.update(scope(), bufferId, named(`n${n}`)))
    await Promise.all([...changes, rekey(db, both, { ...quiet, rowsAtOnce: 3 })])
    await rekey(db, both, quiet)
    for (const [n, { bufferId }] of made.entries()) {
      const { buffer } = await read(freshBox, bufferId)
      expect([buffer.name, buffer.delivery.signing?.secret]).to.deep.equal([`n${n}`, `n${n}`])
      expect(buffer.delivery.headers).to.deep.equal(SECRETS.delivery.headers)
    }
  })

  it('do not undo what was written between their reading and their writing', async () => {
    const { bufferId } = await insert(oldBox)
    const moving = await db.begin(async (transaction) => {
      await transaction`SELECT FROM buffers WHERE buffer_id = ${bufferId} FOR UPDATE`
      const moving = rekey(db, both, quiet)
      await eventually(async () => {
        const waiting = await db`SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted`
        return waiting.length > 0
      })
      await transaction`
        UPDATE buffers SET config = jsonb_set(config, '{name}', '"new"') WHERE buffer_id = ${bufferId}`
      return { moving }
    })
    expect(await moving.moving).to.deep.equal({ rows: 1, left: [] })
    expect((await read(freshBox, bufferId)).buffer.name).to.equal('new')
  })

  it('are left and told where their key is missing, or their text is damaged', async () => {
    await insert(createSecretBox([LOST]))
    await insert(createSecretBox([LOST]))
    const damaged = await insert(oldBox)
    await db`
      UPDATE buffers SET config = jsonb_set(config, '{delivery,signing,secret}',
        to_jsonb(config #>> '{delivery,signing,secret}' || 'AAAA'))
      WHERE uid = ${damaged.uid}`
    const plain = await insert(oldBox)
    await db`
      UPDATE buffers SET config = jsonb_set(config, '{delivery,headers,x-other}', '"in the clear"')
      WHERE uid = ${plain.uid}`
    const good = await insert(oldBox)
    const { rows, left } = await rekey(db, both, quiet)
    expect(rows).to.equal(1)
    expect(left).to.have.deep.members([
      { table: 'buffers', keyIds: ['lost'], rows: 2 },
      { table: 'buffers', keyIds: ['old'], rows: 1 },
      { table: 'buffers', keyIds: ['?', 'old'], rows: 1 },
    ])
    expect(await rowsWithoutKey(db, both.keyIds)).to.have.deep.members([
      { table: 'buffers', keyId: 'lost', rows: 2 },
      { table: 'buffers', keyId: '?', rows: 1 },
    ])
    expect((await read(freshBox, good.bufferId)).unreadable).to.equal(undefined)
  })
})

describe('rows without their key', () => {
  it('are counted by an index, whatever else the table holds', async () => {
    // A database and a connection of its own: what others read of the table would be counted later.
    const db = connect(await freshDatabase(), { max: 1, statementTimeoutMs: 0 })
    const customerId = await insertCustomer(db)
    await db`
      INSERT INTO buffers (uid, buffer_id, customer_id, project_id, config)
      SELECT gen_random_uuid(), ${customerId} || n, ${customerId}, 'p',
        jsonb_build_object('delivery', jsonb_build_object('signing', jsonb_build_object('secret',
          CASE WHEN n = 1 THEN 'enc1:lost:x' ELSE 'enc1:fresh:x' END))) FROM generate_series(1, 5000) AS n`
    await db`ANALYZE buffers`
    const scans = async () => {
      await db`SELECT pg_stat_force_next_flush()`
      const [row] = await db<{ scans: number }[]>`
        SELECT seq_scan AS scans FROM pg_stat_user_tables WHERE relname = 'buffers'`
      return row!.scans
    }
    const before = await scans()
    expect(await rowsWithoutKey(db, ['fresh'])).to.deep.equal([{ table: 'buffers', keyId: 'lost', rows: 1 }])
    expect(await scans()).to.equal(before)
    await db.end()
  })
})
