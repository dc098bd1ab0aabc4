/** The ledger while Postgres is away, late, silent, or cut off: nobody pays twice, and nothing is given away. */
import { expect } from 'chai'
import { after, describe, it } from 'mocha'
import type { CreditStatements } from '../../internal/billing/ports.ts'
import { LedgerUnavailableError } from '../../internal/ingest/ports.ts'
import { eventually } from '../support/eventually.ts'
import { balanceOf, unsettledOf } from '../support/rows.ts'
import { seededFractions } from '../support/seeded.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { clockOf, failureOf, ledgersOfEachTest, PATIENCE_MS, paidOf, times } from './ledgers.ts'

describe('billing: the ledger and a Postgres that fails', () => {
  const here = ledgersOfEachTest()
  let proxy: TcpProxy | undefined
  after(() => proxy?.close())

  it('goes on in advance while Postgres does not answer, for a bounded number of credits', async () => {
    const { customerId, buffer } = await here.account(1_000_000)
    let away = false
    let now = 0
    const apply: CreditStatements['apply'] = async (boot, statement) => {
      if (away) throw new Error('away')
      return here.apply(boot, statement)
    }
    const node = here.ledger({ statements: here.applying(apply), clock: clockOf(() => now) })
    const charge = { customerId, bufferUid: buffer.uid, credits: 1 }
    for (let i = 0; i < 4; i++) await Promise.all(times(25, () => node.charge(charge)))
    await node.reported(customerId)
    const held = await here.advancedOf(customerId)
    away = true
    const charged = times(1_000, () => failureOf(node.charge(charge)))
    now = PATIENCE_MS + 1
    const paid = (await Promise.all(charged)).filter((answer) => answer === undefined).length
    expect(paid).to.be.within(1, held)
    away = false
    await node.reported(customerId)
    await eventually(async () => (await balanceOf(here.db, customerId)) === 1_000_000 - 100 - paid)
  })

  it('gives up on a database that is away, and charges nothing later', async () => {
    const { customerId, buffer } = await here.account(10)
    let away = true
    let now = 0
    const charges: number[] = []
    const problems: unknown[] = []
    const apply: CreditStatements['apply'] = async (boot, statement) => {
      if (away) throw new Error('away')
      charges[statement.number] = statement.runs.count.length
      return here.apply(boot, statement)
    }
    const node = here.ledger({
      statements: here.applying(apply),
      clock: clockOf(() => now),
      onProblem: (error) => problems.push(error),
    })
    const charged = failureOf(node.charge({ customerId, bufferUid: buffer.uid, credits: 4 }))
    await eventually(() => problems.length > 0)
    now = PATIENCE_MS + 1
    const failed = await charged
    expect(failed).to.be.instanceOf(LedgerUnavailableError)
    expect(failed.cause).to.have.property('message', 'away')
    away = false
    expect(await node.charge({ customerId, bufferUid: buffer.uid, credits: 1 })).to.deep.equal({ paid: true })
    expect(charges).to.deep.equal([undefined, 0, 1])
    expect(await balanceOf(here.db, customerId)).to.equal(9)
  })

  it('credits back what was charged by a statement whose answer came too late', async () => {
    const { customerId, buffer } = await here.account(10)
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    let now = 0
    const apply: CreditStatements['apply'] = async (boot, statement) => {
      const answer = await here.apply(boot, statement)
      if (statement.number === 1) await gate
      return answer
    }
    const node = here.ledger({ statements: here.applying(apply), clock: clockOf(() => now) })
    const charged = failureOf(node.charge({ customerId, bufferUid: buffer.uid, credits: 4 }))
    await eventually(async () => (await balanceOf(here.db, customerId)) === 6)
    now = PATIENCE_MS + 1
    expect(await charged).to.be.instanceOf(LedgerUnavailableError)
    open()
    await eventually(async () => (await balanceOf(here.db, customerId)) === 10)
    expect(await unsettledOf(here.db, customerId)).to.equal(0)
  })

  it('goes on over a new connection when one hangs', async () => {
    const { customerId, buffer } = await here.account(10)
    // Of one connection: were there others, the next statement would go over one of those.
    const hasty = here.client(here.url, 150, 1)
    // What opens and closes the node is not repeated, and stays patient.
    const node = here.ledger({ statements: here.applying((boot, statement) => hasty.apply(boot, statement)) })
    const charge = { customerId, bufferUid: buffer.uid, credits: 1 }
    await node.charge(charge)
    // The customer's row is locked: the statement hangs on the server until the lock goes.
    await here.db.begin(async (transaction) => {
      await transaction`SELECT FROM customers WHERE customer_id = ${customerId} FOR UPDATE`
      const waiting = node.charge(charge)
      await eventually(async () => (await hangingStatements()) >= 2)
      void failureOf(waiting)
    })
    await node.charge(charge)
    await eventually(async () => (await balanceOf(here.db, customerId)) === 7)
  })

  async function hangingStatements(): Promise<number> {
    const rows = await here.db`SELECT FROM pg_stat_activity
      WHERE application_name = 'ledger' AND wait_event_type = 'Lock'`
    return rows.length
  }

  it('keeps the sum over connections cut at any byte, 200 rounds', async function () {
    this.timeout(120_000)
    const seed = Number(process.env.PENSTOCK_TEST_SEED ?? Date.now() % 1_000_000)
    const random = seededFractions(seed)
    proxy = await TcpProxy.to(Number(new URL(here.url).port))
    const node = here.ledger({ statements: here.client(proxy.through(here.url), 2_000) })
    const { customerId, buffer } = await here.account(1_000_000)
    let spent = 0
    for (let round = 0; round < 200; round++) {
      const up = random() < 0.5
      proxy.cutAt({
        direction: up ? 'up' : 'down',
        afterBytes: Math.floor(random() * (up ? 300 : 90)),
      })
      const charges = times(1 + Math.floor(random() * 5), () => ({
        customerId,
        bufferUid: buffer.uid,
        credits: 1 + Math.floor(random() * 9),
      }))
      const answers = await Promise.all(charges.map((charge) => node.charge(charge)))
      expect(paidOf(answers), `seed ${seed}, round ${round}`).to.equal(charges.length)
      // Under such a load charges are paid in advance: each round is to have a statement that may be cut.
      await node.reported(customerId)
      for (const charge of charges) {
        if (random() < 0.3) node.refund(charge)
        else {
          node.settle(charge)
          spent += charge.credits
        }
      }
    }
    proxy.cutAt(null)
    await node.close()
    expect(proxy.cuts, `seed ${seed}`).to.be.above(100)
    expect(await balanceOf(here.db, customerId), `seed ${seed}`).to.equal(1_000_000 - spent)
    const [booked] = await here.db`SELECT sum(amount)::bigint AS sum FROM credit_transactions
      WHERE customer_id = ${customerId}`
    expect(booked?.sum, `seed ${seed}`).to.equal(1_000_000 - spent)
  })

  it('keeps the sum while the server ends its sessions in the middle', async () => {
    const { customerId, buffer } = await here.account(10_000)
    const node = here.ledger({ statements: here.client(here.url) })
    const charge = { customerId, bufferUid: buffer.uid, credits: 1 }
    let paid = 0
    for (let round = 0; round < 15; round++) {
      const answers = times(20, () => node.charge(charge))
      await here.db`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ledger'`
      paid += paidOf(await Promise.all(answers))
    }
    expect(paid).to.equal(300)
    await node.reported(customerId)
    expect(await balanceOf(here.db, customerId)).to.equal(10_000 - 300)
  })
})
