/** Credits that are owed, because they were spent before their money went back (docs/architecture/billing.md). */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import type { CreditAnswer, CreditStatement } from '../../internal/billing/ports.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createCreditAccounts } from '../../internal/postgres/credits.ts'
import { PostgresCreditStatements } from '../../internal/postgres/ledger.ts'
import { closeNode } from '../../internal/postgres/settlement.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

describe('postgres: a debt of credits', () => {
  let db: Database
  let statements: PostgresCreditStatements
  let boot: string
  let customerId: string
  let buffer: TestBuffer
  let number: number

  before(async () => {
    const url = await freshDatabase()
    db = connect(url, { max: 8 })
    statements = new PostgresCreditStatements({ open: () => connect(url, { max: 4 }) })
  })
  beforeEach(async () => {
    number = 0
    boot = randomUUID()
    customerId = await insertCustomer(db, 6_400)
    buffer = await insertBuffer(db, customerId)
    await statements.open(boot)
  })
  after(async () => {
    await statements.end()
    await db.end()
  })

  /** The next statement of the node: charges of one credit, and what it says of its advance. */
  function charge(items: number, rest: { spent?: number; giveBack?: number; take?: number } = {}) {
    const { spent = 0, giveBack = 0, take = 0 } = rest
    number++
    const statement: CreditStatement = {
      customerId,
      number,
      buffers: [buffer.uid],
      runs: { buffer: [1], credits: [1], count: [items] },
      refunds: { credits: [0], items: [0] },
      spent: { credits: [spent], items: [spent] },
      settled: 0,
      giveBack,
      take,
    }
    return statements.apply(boot, statement)
  }

  const takeBack = (credits: number) => db`SELECT take_credits(${customerId}, ${credits}, 'Money back')`
  const grant = (credits: number) => createCreditAccounts(db).grant(customerId, credits, 'Credits added')

  async function account() {
    const [row] = await db<{ credits: number; advanced: number; credit_debt: number }[]>`
      SELECT credits, advanced, credit_debt FROM customers WHERE customer_id = ${customerId}`
    return { credits: row!.credits, advanced: row!.advanced, debt: row!.credit_debt }
  }

  /** All that moved is the balance, and none on the way is below zero. */
  async function addsUp(): Promise<void> {
    const rows = await createCreditAccounts(db).transactions(customerId, 500)
    const sum = rows.reduce((total, { amount }) => total + amount, 0)
    const { credits } = await account()
    // The first credits of a customer of these tests stand in no row.
    const [first] = await db<{ own: number }[]>`
      SELECT count(*)::int AS own FROM credit_transactions
      WHERE customer_id = ${customerId} AND description = 'Initial credits'`
    expect(sum + (first!.own === 0 ? 6_400 : 0)).to.equal(credits)
    for (const { balanceAfter } of rows) expect(balanceAfter).to.be.at.least(0)
    expect(rows[0]?.balanceAfter).to.equal(credits)
  }

  const seen = ({ granted, balance, taken }: CreditAnswer) => ({ granted, balance, taken })

  it('pays at once what is free', async () => {
    await takeBack(6_000)
    expect(await account()).to.deep.equal({ credits: 400, advanced: 0, debt: 0 })
    await takeBack(1_000)
    expect(await account()).to.deep.equal({ credits: 0, advanced: 0, debt: 600 })
    expect(seen(await charge(1))).to.deep.equal({ granted: 0, balance: 0, taken: 0 })
    await addsUp()
  })

  it('is paid by what comes next, before anything is charged', async () => {
    await takeBack(7_000)
    expect(await grant(500)).to.equal(0)
    expect(await account()).to.deep.equal({ credits: 0, advanced: 0, debt: 100 })
    expect(await grant(150)).to.equal(50)
    expect(await account()).to.deep.equal({ credits: 50, advanced: 0, debt: 0 })
    expect(seen(await charge(60))).to.deep.equal({ granted: 50, balance: 0, taken: 0 })
    await addsUp()
  })

  it('leaves a node what it holds in advance, and is paid by what comes back of it', async () => {
    const { taken } = await charge(0, { take: 90 })
    expect(taken).to.equal(90)
    await takeBack(6_400)
    expect(await account()).to.deep.equal({ credits: 90, advanced: 90, debt: 90 })
    expect(seen(await charge(5, { spent: 30, giveBack: 60 }))).to.deep.equal({
      granted: 0,
      balance: 0,
      taken: 0,
    })
    expect(await account()).to.deep.equal({ credits: 0, advanced: 0, debt: 30 })
    await addsUp()
  })

  it('is paid by what comes back of a node, of which the rest is free', async () => {
    await charge(0, { take: 90 })
    await takeBack(6_350)
    expect(await account()).to.deep.equal({ credits: 90, advanced: 90, debt: 40 })
    expect(seen(await charge(60, { giveBack: 90 }))).to.deep.equal({ granted: 50, balance: 0, taken: 0 })
    expect(await account()).to.deep.equal({ credits: 0, advanced: 0, debt: 0 })
    await addsUp()
  })

  it('is paid by what comes back of a node that is gone, with the next charge', async () => {
    await charge(10)
    await takeBack(6_400)
    expect(await account()).to.deep.equal({ credits: 0, advanced: 0, debt: 10 })
    await closeNode(db, boot)
    expect(await account()).to.deep.equal({ credits: 10, advanced: 0, debt: 10 })
    boot = randomUUID()
    number = 0
    await statements.open(boot)
    expect(seen(await charge(1))).to.deep.equal({ granted: 0, balance: 0, taken: 0 })
    expect(await account()).to.deep.equal({ credits: 0, advanced: 0, debt: 0 })
    await addsUp()
  })

  it('is answered as the first time when a statement is repeated', async () => {
    await charge(0, { take: 90 })
    await takeBack(6_350)
    const first = await charge(20, { giveBack: 90 })
    number--
    expect(await charge(20, { giveBack: 90 })).to.deep.equal(first)
    expect(await account()).to.deep.equal({ credits: 30, advanced: 0, debt: 0 })
    await addsUp()
  })

  it('does not count as used', async () => {
    await charge(7)
    await takeBack(1_000)
    expect((await createCreditAccounts(db).read(customerId))?.creditsUsedThisMonth).to.equal(7)
  })

  it('adds up beside charges and grants at once', async () => {
    const nodes = Array.from({ length: 3 }, () => randomUUID())
    await Promise.all(nodes.map((each) => statements.open(each)))
    const charging = nodes.map(async (each) => {
      for (let next = 1; next <= 20; next++) {
        await statements.apply(each, {
          customerId,
          number: next,
          buffers: [buffer.uid],
          runs: { buffer: [1], credits: [3], count: [5] },
          refunds: { credits: [0], items: [0] },
          spent: { credits: [0], items: [0] },
          settled: 0,
          giveBack: 0,
          take: 0,
        })
      }
    })
    const moving = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? takeBack(700) : grant(100)))
    await Promise.all([...charging, ...moving])
    const { credits, debt } = await account()
    const [spent] = await db<{ sum: number }[]>`
      SELECT -sum(amount)::bigint AS sum FROM credit_transactions
      WHERE customer_id = ${customerId} AND type = 'consumption'`
    expect(credits - debt).to.equal(6_400 + 10 * 100 - 10 * 700 - Number(spent!.sum))
    await addsUp()
  })
})
