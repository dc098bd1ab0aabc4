/** Suspensions on the real Postgres: the state of a customer, and the rows of buffers that follow it. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { createSuspensions, type Suspensions } from '../../internal/accounts/suspensions.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createSuspensionStore } from '../../internal/postgres/suspensions.ts'
import { eventually } from '../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

interface Row {
  suspended: boolean
  version: number
  enabled: boolean
  updatedAt: string
}

describe('the suspension of a customer', () => {
  let db: Database
  let customerId: string
  let suspensions: Suspensions

  before(async () => {
    db = connect(await freshDatabase(), { max: 6 })
    suspensions = createSuspensions(createSuspensionStore(db))
  })
  after(() => db.end())
  beforeEach(async () => {
    customerId = await insertCustomer(db)
  })

  async function rowOf({ uid }: TestBuffer): Promise<Row> {
    const [row] = await db<Row[]>`
      SELECT suspended, version, enabled, updated_at::text AS "updatedAt" FROM buffers WHERE uid = ${uid}`
    return row!
  }

  /** How many buffers of the customer have which state. */
  async function states(): Promise<Record<string, number>> {
    const rows = await db<{ suspended: boolean; count: number }[]>`
      SELECT suspended, count(*) FROM buffers WHERE customer_id = ${customerId} GROUP BY 1`
    return Object.fromEntries(rows.map(({ suspended, count }) => [String(suspended), count]))
  }

  function untilWaiting(locktype: string): Promise<unknown> {
    return eventually(async () => {
      const waiting = await db`SELECT FROM pg_locks WHERE locktype = ${locktype} AND NOT granted`
      return waiting.length > 0
    })
  }

  it('counts as a change of each of its buffers, and of nobody else`s', async () => {
    const mine = await insertBuffer(db, customerId)
    const disabled = await insertBuffer(db, customerId)
    const deleted = await insertBuffer(db, customerId)
    await db`UPDATE buffers SET enabled = false WHERE uid = ${disabled.uid}`
    await db`UPDATE buffers SET deleted_at = now(), deleted_state = 'enabled' WHERE uid = ${deleted.uid}`
    const others = await insertBuffer(db, await insertCustomer(db))
    const before = await rowOf(mine)
    expect(await suspensions.set(customerId, true)).to.include({ changed: true, buffers: 3 })
    expect(await rowOf(mine)).to.deep.equal({ ...before, suspended: true, version: before.version + 1 })
    expect(await rowOf(deleted)).to.include({ suspended: true })
    expect(await rowOf(others)).to.include({ suspended: false, version: 1 })
    const told = await db<{ id: string }[]>`
      SELECT id FROM config_changes WHERE entity IN ('buffer', 'customer') ORDER BY version DESC LIMIT 4`
    expect(told.map(({ id }) => id)).to.have.members([mine.uid, disabled.uid, deleted.uid, customerId])
    expect(await suspensions.set(customerId, false)).to.deep.equal({
      changed: true,
      suspendedAt: null,
      buffers: 3,
    })
    expect(await rowOf(mine)).to.deep.equal({ ...before, version: before.version + 2 })
    expect(await rowOf(disabled), 'it was disabled by itself').to.include({ enabled: false })
  })

  it('is told once, and what was cut off is completed by the next run', async () => {
    await insertBuffer(db, customerId)
    const store = createSuspensionStore(db)
    const first = await store.set(customerId, true)
    expect(await states()).to.deep.equal({ false: 1 })
    const again = await suspensions.set(customerId, true)
    expect(again).to.deep.equal({ changed: false, suspendedAt: first!.suspendedAt, buffers: 1 })
    expect(await suspensions.set(customerId, true)).to.deep.equal({ ...again, buffers: 0 })
  })

  it('reaches all buffers, some in each transaction', async () => {
    await db`
      INSERT INTO buffers (uid, buffer_id, customer_id, project_id, config, deleted_at, deleted_state)
      SELECT gen_random_uuid(), ${customerId} || n, ${customerId}, 'p', '{}',
        CASE WHEN n % 3 = 0 THEN now() END, CASE WHEN n % 3 = 0 THEN 'enabled' END
      FROM generate_series(1, 100) AS n`
    const store = createSuspensionStore(db, 10)
    await store.set(customerId, true)
    expect(await store.markBuffers(customerId)).to.be.within(1, 20)
    expect(await createSuspensions(store).set(customerId, true)).to.include({ changed: false })
    expect(await states()).to.deep.equal({ true: 100 })
  })

  it('holds for a buffer that is created meanwhile, by whatever version', async () => {
    await suspensions.set(customerId, true)
    expect(await rowOf(await insertBuffer(db, customerId))).to.include({ suspended: true })
    await suspensions.set(customerId, false)
    expect(await rowOf(await insertBuffer(db, customerId))).to.include({ suspended: false })
  })

  it('waits for a creation under way, so that no buffer is forgotten', async () => {
    const created = Promise.withResolvers<void>()
    const commit = Promise.withResolvers<void>()
    const creation = db.begin(async (transaction) => {
      await transaction`INSERT INTO buffers (uid, buffer_id, customer_id, project_id, config)
        VALUES (${randomUUID()}, ${randomUUID()}, ${customerId}, 'p', '{}')`
      created.resolve()
      await commit.promise
    })
    await created.promise
    const suspending = suspensions.set(customerId, true)
    await untilWaiting('advisory')
    commit.resolve()
    await creation
    expect(await suspending).to.include({ buffers: 1 })
    expect(await states()).to.deep.equal({ true: 1 })
  })

  it('changes only after the buffers that get the earlier state have it', async () => {
    const { uid } = await insertBuffer(db, customerId)
    const locked = Promise.withResolvers<void>()
    const commit = Promise.withResolvers<void>()
    const other = db.begin(async (transaction) => {
      await transaction`SELECT FROM buffers WHERE uid = ${uid} FOR UPDATE`
      locked.resolve()
      await commit.promise
    })
    await locked.promise
    const suspending = suspensions.set(customerId, true)
    await untilWaiting('transactionid')
    const resuming = suspensions.set(customerId, false)
    await untilWaiting('advisory')
    commit.resolve()
    await Promise.all([other, suspending, resuming])
    expect(await states()).to.deep.equal({ false: 1 })
  })

  it('leaves the buffers as the customer is, however many suspend and resume at once', async () => {
    for (let n = 0; n < 8; n++) await insertBuffer(db, customerId)
    const hasty = createSuspensions(createSuspensionStore(db, 1))
    for (let round = 0; round < 10; round++) {
      await Promise.all([true, false, true, false].map((suspended) => hasty.set(customerId, suspended)))
      const [row] = await db<{ now: boolean }[]>`SELECT is_suspended(${customerId}) AS now`
      expect(await states()).to.deep.equal({ [String(row!.now)]: 8 })
    }
  })

  it('is refused for a customer that does not exist', async () => {
    const error = await suspensions.set('nobody', true).catch((reason) => reason)
    expect(error).to.include({ key: 'customerNotFound' })
  })
})
