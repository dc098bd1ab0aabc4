import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { CreditStatements } from '../../internal/billing/ports.ts'
import { LedgerUnavailableError } from '../../internal/ingest/ports.ts'
import { closeNodes } from '../../internal/postgres/settlement.ts'
import { eventually } from '../support/eventually.ts'
import { balanceOf, unsettledOf } from '../support/rows.ts'
import { clockOf, failureOf, ledgersOfEachTest, paidOf, times } from './ledgers.ts'

describe('billing: the ledger on Postgres', () => {
  const here = ledgersOfEachTest()

  /** `look` runs before each statement. */
  const counting = (look: () => void): CreditStatements =>
    here.applying((boot, statement) => {
      look()
      return here.apply(boot, statement)
    })

  it('charges a burst exactly, in few statements, and refuses the rest with the balance', async () => {
    const { customerId, buffer } = await here.account(900)
    let sent = 0
    const node = here.ledger({ statements: counting(() => void sent++) })
    const charge = { customerId, bufferUid: buffer.uid, credits: 1 }
    const answers = await Promise.all(times(1_000, () => node.charge(charge)))
    expect(answers.slice(0, 900).every((answer) => answer.paid)).to.equal(true)
    expect(answers.slice(900)).to.deep.equal(times(100, () => ({ paid: false, balance: 0 })))
    expect(await balanceOf(here.db, customerId)).to.equal(0)
    expect(await unsettledOf(here.db, customerId)).to.equal(900)
    expect(sent).to.equal(1)
  })

  it('is open ahead of its first charge, or by it when Postgres was away', async () => {
    const { customerId, buffer } = await here.account(1)
    const opened: string[] = []
    const statements: CreditStatements = {
      ...here.applying(here.apply),
      open: async (boot) => {
        opened.push(boot)
        if (opened.length === 1) throw new Error('away')
        await here.applying(here.apply).open(boot)
      },
    }
    const problems: unknown[] = []
    const node = here.ledger({ boot: randomUUID(), statements, onProblem: (error) => problems.push(error) })
    await node.open()
    expect([opened.length, problems.length]).to.deep.equal([1, 1])
    await node.open()
    expect(await node.charge({ customerId, bufferUid: buffer.uid, credits: 1 })).to.deep.equal({ paid: true })
    expect([opened.length, problems.length]).to.deep.equal([2, 1])
  })

  it('never refuses what the balance pays, in whatever order amounts arrive', async () => {
    const { customerId, buffer } = await here.account(50)
    const node = here.ledger()
    const amounts = times(200, (i) => ((i * 7) % 11) + 1)
    const answers = await Promise.all(
      amounts.map((credits) => node.charge({ customerId, bufferUid: buffer.uid, credits })),
    )
    let spent = 0
    for (const [i, answer] of answers.entries()) {
      if (answer.paid) spent += amounts[i] ?? 0
      else expect(answer.balance).to.be.below(amounts[i] ?? 0)
    }
    expect(await balanceOf(here.db, customerId)).to.equal(50 - spent)
    expect(50 - spent).to.equal(0)
  })

  it('two nodes share a balance exactly', async () => {
    const { customerId, buffer } = await here.account(700)
    // A tenth of the machine's pace: a node waits 500 ms for what the other gives back, and a pause may take as long.
    const clock = clockOf(() => performance.now() / 10)
    const nodes = [here.ledger({ clock }), here.ledger({ clock, statements: here.client(here.url) })]
    const rounds = times(10, () => nodes).flat()
    const answers = await Promise.all(
      rounds.flatMap((node) =>
        times(50, () => node.charge({ customerId, bufferUid: buffer.uid, credits: 1 })),
      ),
    )
    expect(paidOf(answers)).to.equal(700)
    expect(await balanceOf(here.db, customerId)).to.equal(0)
  })

  it('pays in advance under load, with fewer statements, and is exact for whoever asks it to report', async () => {
    const { customerId, buffer } = await here.account(1_000_000)
    let sent = 0
    let now = 0
    const node = here.ledger({ statements: counting(() => void sent++), clock: clockOf(() => now) })
    const charge = { customerId, bufferUid: buffer.uid, credits: 2 }
    for (let i = 0; i < 40; i++) await Promise.all(times(25, () => node.charge(charge)))
    expect(sent).to.be.below(40)
    await node.reported(customerId)
    expect(await balanceOf(here.db, customerId)).to.equal(1_000_000 - 2_000)
    expect(await unsettledOf(here.db, customerId)).to.equal(2_000)
    const [day] = await here.db`SELECT ingest_count FROM ingest_days WHERE buffer_uid = ${buffer.uid}`
    expect(day?.ingest_count).to.equal(1_000)
    // The load is over.
    now = 1_000
    await eventually(async () => (await here.advancedOf(customerId)) === 0)
  })

  it('reports by itself, soon', async () => {
    const { customerId, buffer } = await here.account(1_000_000)
    const node = here.ledger()
    const charge = { customerId, bufferUid: buffer.uid, credits: 1 }
    for (let i = 0; i < 10; i++) await Promise.all(times(25, () => node.charge(charge)))
    await eventually(async () => (await balanceOf(here.db, customerId)) === 1_000_000 - 250)
  })

  it('settles by itself when no charge comes, and credits back at once', async () => {
    const { customerId, buffer } = await here.account(10)
    const node = here.ledger()
    const charge = { customerId, bufferUid: buffer.uid, credits: 3 }
    await Promise.all([node.charge(charge), node.charge(charge)])
    node.settle(charge)
    node.refund(charge)
    await eventually(async () => (await balanceOf(here.db, customerId)) === 7)
    await eventually(async () => (await unsettledOf(here.db, customerId)) === 0)
  })

  it('refuses without asking for a while, but never after the balance was raised', async () => {
    const { customerId, buffer } = await here.account(2)
    let sent = 0
    const node = here.ledger({ statements: counting(() => void sent++), refusalMs: 3_600_000 })
    const charge = { customerId, bufferUid: buffer.uid, credits: 3 }
    expect(await node.charge(charge)).to.deep.equal({ paid: false, balance: 2 })
    expect(await node.charge(charge)).to.deep.equal({ paid: false, balance: 2 })
    expect(sent).to.equal(1)
    await here.db`UPDATE customers SET credits = credits + 1 WHERE customer_id = ${customerId}`
    node.credited(customerId)
    expect(await node.charge(charge)).to.deep.equal({ paid: true })
    expect(await node.charge(charge)).to.deep.equal({ paid: false, balance: 0 })
    node.refund(charge)
    expect(await node.charge(charge)).to.deep.equal({ paid: true })
  })

  it('a customer that waits for Postgres holds up no other', async () => {
    const stuck = await here.account(5)
    const free = await here.account(5)
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const apply: CreditStatements['apply'] = async (boot, statement) => {
      if (statement.customerId === stuck.customerId) await gate
      return here.apply(boot, statement)
    }
    const node = here.ledger({ statements: here.applying(apply) })
    const waiting = node.charge({ customerId: stuck.customerId, bufferUid: stuck.buffer.uid, credits: 1 })
    const done = await node.charge({ customerId: free.customerId, bufferUid: free.buffer.uid, credits: 1 })
    expect(done.paid).to.equal(true)
    open()
    expect(await waiting).to.deep.equal({ paid: true })
  })

  it('a node that crashed costs its customers nothing', async () => {
    const { customerId, buffer } = await here.account(100)
    const boot = randomUUID()
    let closed = 0
    const node = here.ledger({ boot, onClosed: () => closed++ })
    const charge = { customerId, bufferUid: buffer.uid, credits: 5 }
    await Promise.all(times(6, () => node.charge(charge)))
    node.settle(charge)
    node.settle(charge)
    await eventually(async () => (await unsettledOf(here.db, customerId)) === 20)
    expect(await closeNodes(here.db, () => true, 0)).to.deep.include({ boot, customerId, credits: 20 })
    expect(await balanceOf(here.db, customerId)).to.equal(90)
    // Should it live on, it learns that it is gone, and nobody pays.
    const zombie = await Promise.all(times(3, () => failureOf(node.charge(charge))))
    expect(zombie.every((error) => error instanceof LedgerUnavailableError)).to.equal(true)
    expect(closed).to.equal(1)
    expect(await balanceOf(here.db, customerId)).to.equal(90)
    const [booked] = await here.db`SELECT sum(amount)::bigint AS sum FROM credit_transactions
      WHERE customer_id = ${customerId}`
    expect(booked?.sum).to.equal(90)
  })

  it('what a crashed node held in advance is free again', async () => {
    const { customerId, buffer } = await here.account(10_000)
    const boot = randomUUID()
    // What is held goes back when time passes without a load.
    const node = here.ledger({ boot, clock: clockOf(() => 0), onClosed: () => {} })
    const charge = { customerId, bufferUid: buffer.uid, credits: 1 }
    await Promise.all(times(50, () => node.charge(charge)))
    expect(await here.advancedOf(customerId)).to.be.above(0)
    await closeNodes(here.db, () => true, 0)
    expect(await here.advancedOf(customerId)).to.equal(0)
    expect(await balanceOf(here.db, customerId)).to.equal(10_000)
  })

  it('closes clean, also under load: nothing is held in advance afterwards', async () => {
    const { customerId, buffer } = await here.account(10_000)
    const node = here.ledger()
    const charge = { customerId, bufferUid: buffer.uid, credits: 1 }
    for (let i = 0; i < 4; i++) await Promise.all(times(25, () => node.charge(charge)))
    for (let i = 0; i < 100; i++) node.settle(charge)
    await node.close()
    expect(await balanceOf(here.db, customerId)).to.equal(9_900)
    expect(await here.advancedOf(customerId)).to.equal(0)
  })

  it('closes clean: everything settled or credited back, no rows left, no more charges', async () => {
    const { customerId, buffer } = await here.account(100)
    const node = here.ledger()
    const charge = { customerId, bufferUid: buffer.uid, credits: 10 }
    await Promise.all(times(4, () => node.charge(charge)))
    node.settle(charge)
    node.settle(charge)
    node.refund(charge)
    await node.close()
    expect(await balanceOf(here.db, customerId)).to.equal(80)
    const rows = await here.db`SELECT FROM settlements WHERE customer_id = ${customerId}`
    expect(rows).to.have.length(0)
    expect(await failureOf(node.charge(charge))).to.be.instanceOf(LedgerUnavailableError)
  })
})
