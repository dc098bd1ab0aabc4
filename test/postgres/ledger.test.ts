import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { CreditStatement } from '../../internal/billing/ports.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { PostgresCreditStatements } from '../../internal/postgres/ledger.ts'
import { closeNodes } from '../../internal/postgres/settlement.ts'
import { balanceOf, insertBuffer, insertCustomer, type TestBuffer, unsettledOf } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

interface Booked {
  amount: number
  type: string
  description: string
  balance_after: number
  buffer_uid: string | null
}

describe('postgres: credit statements', () => {
  let db: Database
  let statements: PostgresCreditStatements
  let boot: string
  let customerId: string
  let a: TestBuffer
  let b: TestBuffer

  before(async () => {
    const url = await freshDatabase()
    db = connect(url)
    statements = new PostgresCreditStatements({ open: () => connect(url, { max: 4 }) })
  })

  after(async () => {
    await statements.end()
    await db.end()
  })

  async function start(credits: number): Promise<void> {
    boot = randomUUID()
    customerId = await insertCustomer(db, credits)
    a = await insertBuffer(db, customerId)
    b = await insertBuffer(db, customerId)
    await statements.open(boot)
  }

  /** Charges in order as [index of the buffer, credits, count]. */
  function statement(
    number: number,
    runs: [1 | 2, number, number][],
    rest: Partial<Pick<CreditStatement, 'settled' | 'refunds' | 'spent' | 'giveBack' | 'take'>> = {},
  ): CreditStatement {
    return {
      customerId,
      number,
      buffers: [a.uid, b.uid],
      runs: {
        buffer: runs.map((run) => run[0]),
        credits: runs.map((run) => run[1]),
        count: runs.map((run) => run[2]),
      },
      refunds: rest.refunds ?? { credits: [0, 0], items: [0, 0] },
      spent: rest.spent ?? { credits: [0, 0], items: [0, 0] },
      settled: rest.settled ?? 0,
      giveBack: rest.giveBack ?? 0,
      take: rest.take ?? 0,
    }
  }

  const booked = () => db<Booked[]>`
    SELECT amount, type, description, balance_after, buffer_uid FROM credit_transactions
    WHERE customer_id = ${customerId} AND description <> 'Initial credits' ORDER BY balance_after DESC`

  /** Consumption is booked by the minute: what is to stand in one row must not begin at the end of one. */
  async function withinOneMinute(): Promise<void> {
    const left = 60_000 - (Date.now() % 60_000)
    if (left < 5_000) await delay(left + 10)
  }

  const ingested = async () =>
    (
      await db<{ ingest_count: number }[]>`
        SELECT ingest_count FROM ingest_days WHERE customer_id = ${customerId}
        ORDER BY buffer_uid = ${b.uid}`
    ).map((row) => row.ingest_count)

  it('pays what the balance allows, and books it by buffer', async () => {
    await start(100)
    const answer = await statements.apply(
      boot,
      statement(1, [
        [1, 2, 10],
        [2, 5, 3],
        [1, 1, 1],
      ]),
    )
    expect(answer).to.deep.equal({ open: true, granted: 14, balance: 64, taken: 0, heldByOthers: 0 })
    expect(await balanceOf(db, customerId)).to.equal(64)
    expect(await unsettledOf(db, customerId)).to.equal(36)
    expect(await ingested()).to.deep.equal([11, 3])
    expect([...(await booked())]).to.deep.equal([
      {
        amount: -21,
        type: 'consumption',
        description: `Ingest to ${a.bufferId}`,
        balance_after: 79,
        buffer_uid: a.uid,
      },
      {
        amount: -15,
        type: 'consumption',
        description: `Ingest to ${b.bufferId}`,
        balance_after: 64,
        buffer_uid: b.uid,
      },
    ])
  })

  it('takes the affordable prefix in order and stops at the first charge that cannot be paid', async () => {
    await start(10)
    const answer = await statements.apply(
      boot,
      statement(1, [
        [1, 3, 2],
        [2, 5, 2],
        [1, 1, 4],
      ]),
    )
    expect(answer).to.deep.equal({ open: true, granted: 2, balance: 4, taken: 0, heldByOthers: 0 })
    expect(await statements.apply(boot, statement(2, [[1, 1, 9]]))).to.deep.equal({
      open: true,
      granted: 4,
      balance: 0,
      taken: 0,
      heldByOthers: 0,
    })
    expect(await statements.apply(boot, statement(3, [[1, 1, 9]]))).to.include({
      granted: 0,
      balance: 0,
      taken: 0,
      heldByOthers: 0,
    })
    expect(await ingested()).to.deep.equal([6])
  })

  it('answers a repeated number as the first time and changes nothing, whatever the repetition holds', async () => {
    await start(10)
    const first = await statements.apply(boot, statement(1, [[1, 1, 4]]))
    expect(await statements.apply(boot, statement(1, [[1, 1, 4]]))).to.deep.equal(first)
    expect(await statements.apply(boot, statement(1, []))).to.deep.equal(first)
    expect(await balanceOf(db, customerId)).to.equal(6)
    await statements.apply(boot, statement(2, [[1, 1, 1]]))
    await statements.apply(boot, statement(1, [[1, 1, 4]]))
    expect(await balanceOf(db, customerId)).to.equal(5)
  })

  it('gives credits in advance, a 64th of what is free at most, and books them when they are spent', async () => {
    await withinOneMinute()
    await start(6_500)
    const first = await statements.apply(boot, statement(1, [[1, 1, 100]], { take: 80 }))
    expect(first).to.include({ granted: 100, taken: 80, balance: 6_320, heldByOthers: 0 })
    expect(await balanceOf(db, customerId)).to.equal(6_400)
    const second = await statements.apply(boot, statement(2, [], { take: 1_000 }))
    expect(second).to.include({ taken: 98, balance: 6_320 - 98 })
    const spent = { credits: [20, 30], items: [10, 3] }
    const third = statement(3, [], { spent, giveBack: 28, settled: 100 })
    expect(await statements.apply(boot, third)).to.include({ taken: 0, balance: 6_250 })
    expect(await statements.apply(boot, third)).to.include({ taken: 0, balance: 6_250 })
    expect(await balanceOf(db, customerId)).to.equal(6_350)
    expect(await unsettledOf(db, customerId)).to.equal(50)
    expect(await ingested()).to.deep.equal([110, 3])
    expect((await booked()).map(({ amount, balance_after }) => [amount, balance_after])).to.deep.equal([
      [-120, 6_380],
      [-30, 6_350],
    ])
  })

  it('does not pay with what another node holds in advance, and tells of it', async () => {
    await start(6_400)
    await statements.apply(boot, statement(1, [], { take: 100 }))
    const other = randomUUID()
    await statements.open(other)
    const answer = await statements.apply(other, statement(1, [[1, 6_301, 1]]))
    expect(answer).to.include({ granted: 0, balance: 6_300, heldByOthers: 100 })
    await statements.apply(boot, statement(2, [], { giveBack: 100 }))
    expect(await statements.apply(other, statement(2, [[1, 6_301, 1]]))).to.include({
      granted: 1,
      heldByOthers: 0,
    })
  })

  it('refuses a node that reports more than it holds, and changes nothing', async () => {
    await start(6_400)
    const more = statement(1, [], { spent: { credits: [1, 0], items: [1, 0] } })
    expect(await statements.apply(boot, more).catch((error) => error)).to.be.an('error')
    expect(await balanceOf(db, customerId)).to.equal(6_400)
  })

  it('refuses a node with a gap in its numbers', async () => {
    await start(10)
    expect(await statements.apply(boot, statement(2, [[1, 1, 1]]))).to.include({ open: false })
    expect(await balanceOf(db, customerId)).to.equal(10)
  })

  it('credits back before it charges, and leaves no trace of a duplicate', async () => {
    await start(4)
    await statements.apply(boot, statement(1, [[1, 4, 1]]))
    const refunds = { credits: [4, 0] as [number, number], items: [1, 0] as [number, number] }
    const answer = await statements.apply(boot, statement(2, [[2, 3, 1]], { refunds }))
    expect(answer).to.deep.equal({ open: true, granted: 1, balance: 1, taken: 0, heldByOthers: 0 })
    expect(await ingested()).to.deep.equal([0, 1])
    expect(await unsettledOf(db, customerId)).to.equal(3)
    expect([...(await booked())]).to.deep.equal([
      {
        amount: -3,
        type: 'consumption',
        description: `Ingest to ${b.bufferId}`,
        balance_after: 1,
        buffer_uid: b.uid,
      },
    ])
  })

  it('books a refund of its own when no consumption row is large enough', async () => {
    await start(10)
    await statements.apply(boot, statement(1, [[1, 4, 1]]))
    await db`UPDATE credit_transactions SET minute = minute - interval '10 minutes'
      WHERE customer_id = ${customerId} AND minute IS NOT NULL`
    await statements.apply(boot, statement(2, [], { refunds: { credits: [4, 0], items: [1, 0] } }))
    expect((await booked()).map(({ amount, type }) => ({ amount, type }))).to.deep.equal([
      { amount: 4, type: 'refund' },
      { amount: -4, type: 'consumption' },
    ])
    expect(await balanceOf(db, customerId)).to.equal(10)
  })

  it('starts the month anew, in UTC', async () => {
    await start(100)
    await db`UPDATE customers SET credits_used_this_month = 70,
      last_reset_at = date_trunc('month', now(), 'UTC') - interval '1 second' WHERE customer_id = ${customerId}`
    await statements.apply(boot, statement(1, [[1, 5, 1]]))
    await statements.apply(boot, statement(2, [[1, 5, 1]]))
    const [row] = await db`SELECT credits_used_this_month AS used,
      last_reset_at = date_trunc('month', now(), 'UTC') AS reset FROM customers WHERE customer_id = ${customerId}`
    expect(row).to.deep.equal({ used: 10, reset: true })
  })

  it('closes a node that is gone: refunds exactly what it had not settled, refuses it from then on', async () => {
    await start(100)
    const alive = randomUUID()
    await statements.open(alive)
    await statements.apply(boot, statement(1, [[1, 10, 3]]))
    await statements.apply(alive, statement(1, [[1, 1, 5]]))
    await statements.apply(boot, statement(2, [[2, 1, 1]], { settled: 20 }))
    const refunded = await closeNodes(db, (each) => each !== alive, 0)
    expect(refunded).to.deep.include({ boot, customerId, credits: 11 })
    expect(await closeNodes(db, (each) => each !== alive, 0)).to.deep.equal([])
    expect(await balanceOf(db, customerId)).to.equal(75)
    expect(await unsettledOf(db, customerId)).to.equal(5)
    expect(await statements.apply(boot, statement(3, [[1, 1, 1]]))).to.include({ open: false })
    expect(await statements.apply(alive, statement(2, [[1, 1, 1]]))).to.include({ open: true, granted: 1 })
    expect(await balanceOf(db, customerId)).to.equal(74)
  })

  it('spares a node that just opened', async () => {
    await start(10)
    await closeNodes(db, () => true, 60_000)
    expect(await statements.apply(boot, statement(1, [[1, 1, 1]]))).to.include({ open: true })
  })

  it('a node that never had a row of a customer gets none after it was closed', async () => {
    await start(10)
    await closeNodes(db, () => true, 0)
    expect(await statements.apply(boot, statement(1, [[1, 1, 1]]))).to.include({ open: false })
    expect(await unsettledOf(db, customerId)).to.equal(0)
  })

  it('keeps the sum of all transactions equal to the balance', async () => {
    await start(50)
    await statements.apply(
      boot,
      statement(1, [
        [1, 3, 5],
        [2, 2, 5],
      ]),
    )
    await statements.apply(
      boot,
      statement(2, [[1, 7, 9]], { refunds: { credits: [0, 4], items: [0, 2] }, settled: 9 }),
    )
    await closeNodes(db, () => true, 0)
    const [row] = await db`SELECT sum(amount)::bigint AS sum FROM credit_transactions
      WHERE customer_id = ${customerId}`
    expect(row?.sum).to.equal(await balanceOf(db, customerId))
  })
})
