import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import { after, before, describe, it } from 'mocha'
import type { CreditTransaction } from '../../internal/domain/model.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createCreditAccounts } from '../../internal/postgres/credits.ts'
import { balanceOf, insertCustomer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

/** The start of a minute. */
const NOON = Date.UTC(2026, 4, 4, 12)

interface Row {
  type: CreditTransaction['type']
  amount: number
  /** Ms after `NOON`. */
  at: number
}

describe('postgres: what moved a balance', () => {
  let db: Database

  before(async () => {
    db = connect(await freshDatabase(), { max: 2 })
  })
  after(() => db.end())

  /** A customer whose balance is the sum of these. */
  async function customerWith(rows: readonly Row[]): Promise<string> {
    const customerId = await insertCustomer(db)
    for (const { type, amount, at } of rows) {
      await db`INSERT INTO credit_transactions (customer_id, amount, type, description, balance_after, created_at)
        VALUES (${customerId}, ${amount}, ${type}, ${type}, 0, ${new Date(NOON + at)})`
    }
    const balance = rows.reduce((sum, { amount }) => sum + amount, 0)
    await db`UPDATE customers SET credits = ${balance} WHERE customer_id = ${customerId}`
    return customerId
  }

  async function list(customerId: string, limit = 500): Promise<CreditTransaction[]> {
    const transactions = await createCreditAccounts(db).transactions(customerId, limit)
    expect(transactions.every((each) => each.customerId === customerId)).to.equal(true)
    return transactions
  }

  /** Newest first, each balance that of the next older one plus its amount, and none below zero. */
  async function holdsTogether(customerId: string): Promise<void> {
    const transactions = await list(customerId)
    const times = transactions.map(({ createdAt }) => createdAt)
    expect(times).to.deep.equal(times.toSorted((a, b) => b - a))
    expect(transactions[0]?.balanceAfter ?? 0).to.equal(await balanceOf(db, customerId))
    transactions.forEach(({ balanceAfter, amount }, index) => {
      expect(balanceAfter).to.be.at.least(0)
      expect(balanceAfter - amount).to.equal(transactions[index + 1]?.balanceAfter ?? 0)
    })
  }

  it('is listed newest first, with the balance after each', async () => {
    const customerId = await customerWith([
      { type: 'grant', amount: 100, at: 0 },
      { type: 'consumption', amount: -30, at: 60_000 },
      { type: 'refund', amount: 5, at: 200_000 },
      { type: 'purchase', amount: 50, at: 120_000 },
    ])
    const shown = (await list(customerId)).map(({ type, amount, balanceAfter, createdAt }) => [
      ...[type, amount, balanceAfter, createdAt - NOON],
    ])
    expect(shown).to.deep.equal([
      ['refund', 5, 125, 200_000],
      ['purchase', 50, 120, 120_000],
      ['consumption', -30, 70, 60_000],
      ['grant', 100, 100, 0],
    ])
  })

  it('counts consumption as the newest of its minute, whatever came in between', async () => {
    const customerId = await customerWith([
      { type: 'grant', amount: 10, at: 0 },
      // 10 of them before the grant of the same minute, 50 after it: one row, from the first on.
      { type: 'consumption', amount: -60, at: 65_000 },
      { type: 'grant', amount: 100, at: 90_000 },
    ])
    const shown = (await list(customerId)).map(({ type, balanceAfter, createdAt }) => [
      ...[type, balanceAfter, createdAt - NOON],
    ])
    expect(shown).to.deep.equal([
      ['consumption', 50, 90_000],
      ['grant', 110, 90_000],
      ['grant', 10, 0],
    ])
    await holdsTogether(customerId)
    // The time is the same when the grant that it follows is on the next page.
    expect((await list(customerId, 1))[0]).to.deep.equal((await list(customerId))[0])
  })

  it('is the same on every reading, and a short page begins a long one', async () => {
    const customerId = await customerWith(
      Array.from({ length: 30 }, (_, index) => ({
        type: index % 3 === 0 ? ('grant' as const) : ('consumption' as const),
        amount: index % 3 === 0 ? 10 : -5,
        at: 1_000 * Math.floor(index / 6),
      })),
    )
    const all = await list(customerId)
    expect(new Set(all.map(({ transactionId }) => transactionId)).size).to.equal(30)
    for (const limit of [1, 2, 7, 29, 30, 31]) {
      expect(await list(customerId, limit)).to.deep.equal(all.slice(0, limit))
    }
  })

  it('is of this customer alone, and nothing at first', async () => {
    await customerWith([{ type: 'grant', amount: 100, at: 0 }])
    expect(await list(await insertCustomer(db))).to.deep.equal([])
    expect(await list('nobody')).to.deep.equal([])
  })

  it('holds together whatever happened in which order', async () => {
    const move = fc.record({
      type: fc.constantFrom<Row['type']>('grant', 'purchase', 'refund', 'consumption'),
      part: fc.integer({ min: 1, max: 100 }),
      buffer: fc.integer({ min: 0, max: 2 }),
      at: fc.integer({ min: 0, max: 180_000 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(move, { minLength: 1, maxLength: 25 }), async (moves) => {
        const rows = new Map<string, Row>()
        let balance = 0
        for (const { type, part, buffer, at } of moves.toSorted((a, b) => a.at - b.at)) {
          const spends = type === 'consumption'
          const amount = spends ? -Math.floor((balance * part) / 100) : part
          if (amount === 0) continue
          balance += amount
          const key = spends ? `${buffer} ${Math.floor(at / 60_000)}` : randomUUID()
          const row = rows.get(key) ?? { type, amount: 0, at }
          rows.set(key, { ...row, amount: row.amount + amount })
        }
        await holdsTogether(await customerWith([...rows.values()]))
      }),
      { numRuns: 30 },
    )
  })
})
