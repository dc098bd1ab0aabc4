import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'
import { CreditLedger, type LedgerOptions } from '../../internal/billing/ledger.ts'
import type { CreditStatements } from '../../internal/billing/ports.ts'
import { LedgerUnavailableError } from '../../internal/ingest/ports.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { PostgresCreditStatements } from '../../internal/postgres/ledger.ts'
import { closeNodes } from '../../internal/postgres/settlement.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { eventually } from '../support/eventually.ts'
import { Line } from '../support/line.ts'
import { balanceOf, insertBuffer, insertCustomer, type TestBuffer, unsettledOf } from '../support/rows.ts'
import { seededFractions } from '../support/seeded.ts'
import { freshDatabase } from '../support/servers.ts'

/** Of a charge that nobody answers: short for a test, and longer than a busy machine takes for one that is answered. */
const PATIENCE_MS = 1_500

describe('billing: the ledger on Postgres', () => {
  let url: string
  let db: Database
  let statements: PostgresCreditStatements
  const ledgers: CreditLedger[] = []
  const clients: PostgresCreditStatements[] = []
  let line: Line | undefined

  before(async () => {
    url = await freshDatabase()
    db = connect(url)
    statements = client(url)
  })

  afterEach(async () => {
    await Promise.all(ledgers.splice(0).map((ledger) => ledger.close()))
  })

  after(async () => {
    await Promise.all(clients.map((one) => one.end()))
    await line?.close()
    await db.end()
  })

  function client(databaseUrl: string, deadlineMs = 2_000): PostgresCreditStatements {
    const open = () => connect(databaseUrl, { max: 4, name: 'ledger' })
    const made = new PostgresCreditStatements({ open, deadlineMs })
    clients.push(made)
    return made
  }

  function ledger(options: Partial<LedgerOptions> = {}): CreditLedger {
    const made = new CreditLedger({
      boot: randomUUID(),
      statements,
      clock: systemClock(),
      unavailable: (message, cause) => new LedgerUnavailableError(message, { cause }),
      onClosed: () => {
        throw new Error('closed by nobody')
      },
      onProblem: () => {},
      ...options,
    })
    ledgers.push(made)
    return made
  }

  /** Statements as they are, with a look at each before it is applied. */
  function watched(look: (number: number) => Promise<void> | void): CreditStatements {
    return {
      open: (boot) => statements.open(boot),
      close: (boot) => statements.close(boot),
      async apply(boot, statement) {
        await look(statement.number)
        return statements.apply(boot, statement)
      },
    }
  }

  async function account(credits: number): Promise<{ customerId: string; buffer: TestBuffer }> {
    const customerId = await insertCustomer(db, credits)
    return { customerId, buffer: await insertBuffer(db, customerId) }
  }

  const times = <T>(count: number, make: (index: number) => T): T[] =>
    Array.from({ length: count }, (_, i) => make(i))
  // biome-ignore lint/suspicious/noExplicitAny: whatever it fails with.
  const failureOf = (answer: unknown): Promise<any> =>
    Promise.resolve(answer).then(
      () => undefined,
      (error) => error,
    )
  const paidOf = (answers: { paid: boolean }[]) => answers.filter((answer) => answer.paid).length

  it('charges a burst exactly, in few statements, and refuses the rest with the balance', async () => {
    const { customerId, buffer } = await account(900)
    let sent = 0
    const node = ledger({ statements: watched(() => void sent++) })
    const charge = { customerId, bufferUid: buffer.uid, credits: 1 }
    const answers = await Promise.all(times(1_000, () => node.charge(charge)))
    expect(answers.slice(0, 900).every((answer) => answer.paid)).to.equal(true)
    expect(answers.slice(900)).to.deep.equal(times(100, () => ({ paid: false, balance: 0 })))
    expect(await balanceOf(db, customerId)).to.equal(0)
    expect(await unsettledOf(db, customerId)).to.equal(900)
    expect(sent).to.equal(1)
  })

  it('never refuses what the balance pays, in whatever order amounts arrive', async () => {
    const { customerId, buffer } = await account(50)
    const node = ledger()
    const amounts = times(200, (i) => ((i * 7) % 11) + 1)
    const answers = await Promise.all(
      amounts.map((credits) => node.charge({ customerId, bufferUid: buffer.uid, credits })),
    )
    let spent = 0
    for (const [i, answer] of answers.entries()) {
      if (answer.paid) spent += amounts[i] ?? 0
      else expect(answer.balance).to.be.below(amounts[i] ?? 0)
    }
    expect(await balanceOf(db, customerId)).to.equal(50 - spent)
    expect(50 - spent).to.equal(0)
  })

  it('two nodes share a balance exactly', async () => {
    const { customerId, buffer } = await account(700)
    const nodes = [ledger(), ledger({ statements: client(url) })]
    const rounds = times(10, () => nodes).flat()
    const answers = await Promise.all(
      rounds.flatMap((node) =>
        times(50, () => node.charge({ customerId, bufferUid: buffer.uid, credits: 1 })),
      ),
    )
    expect(paidOf(answers)).to.equal(700)
    expect(await balanceOf(db, customerId)).to.equal(0)
  })

  it('pays in advance under load, with fewer statements, and is exact for whoever asks it to report', async () => {
    const { customerId, buffer } = await account(1_000_000)
    let sent = 0
    const node = ledger({ statements: watched(() => void sent++) })
    const charge = { customerId, bufferUid: buffer.uid, credits: 2 }
    for (let i = 0; i < 40; i++) await Promise.all(times(25, () => node.charge(charge)))
    expect(sent).to.be.below(40)
    await node.reported(customerId)
    expect(await balanceOf(db, customerId)).to.equal(1_000_000 - 2_000)
    expect(await unsettledOf(db, customerId)).to.equal(2_000)
    const [day] = await db`SELECT ingest_count FROM ingest_days WHERE buffer_uid = ${buffer.uid}`
    expect(day?.ingest_count).to.equal(1_000)
    await eventually(async () => (await advancedOf(customerId)) === 0)
  })

  const advancedOf = async (customerId: string): Promise<number> => {
    const [row] = await db`SELECT advanced, (SELECT sum(advance)::bigint FROM settlements s
      WHERE s.customer_id = c.customer_id) AS held FROM customers c WHERE customer_id = ${customerId}`
    expect(row?.held ?? 0).to.equal(row?.advanced)
    return row?.advanced
  }

  it('reports by itself, soon', async () => {
    const { customerId, buffer } = await account(1_000_000)
    const node = ledger()
    const charge = { customerId, bufferUid: buffer.uid, credits: 1 }
    for (let i = 0; i < 10; i++) await Promise.all(times(25, () => node.charge(charge)))
    await eventually(async () => (await balanceOf(db, customerId)) === 1_000_000 - 250)
  })

  it('goes on in advance while Postgres does not answer, for a bounded number of credits', async () => {
    const { customerId, buffer } = await account(1_000_000)
    let away = false
    const apply: CreditStatements['apply'] = async (boot, statement) => {
      if (away) throw new Error('away')
      return statements.apply(boot, statement)
    }
    const node = ledger({ statements: { ...watched(() => {}), apply }, patienceMs: PATIENCE_MS })
    const charge = { customerId, bufferUid: buffer.uid, credits: 1 }
    for (let i = 0; i < 4; i++) await Promise.all(times(25, () => node.charge(charge)))
    await node.reported(customerId)
    const held = await advancedOf(customerId)
    away = true
    const answers = await Promise.all(times(1_000, () => failureOf(node.charge(charge))))
    const paid = answers.filter((answer) => answer === undefined).length
    expect(paid).to.be.within(1, held)
    away = false
    await node.reported(customerId)
    await eventually(async () => (await balanceOf(db, customerId)) === 1_000_000 - 100 - paid)
  })

  it('settles by itself when no charge comes, and credits back at once', async () => {
    const { customerId, buffer } = await account(10)
    const node = ledger()
    const charge = { customerId, bufferUid: buffer.uid, credits: 3 }
    await Promise.all([node.charge(charge), node.charge(charge)])
    node.settle(charge)
    node.refund(charge)
    await eventually(async () => (await balanceOf(db, customerId)) === 7)
    await eventually(async () => (await unsettledOf(db, customerId)) === 0)
  })

  it('refuses without asking for a while, but never after the balance was raised', async () => {
    const { customerId, buffer } = await account(2)
    let sent = 0
    const node = ledger({ statements: watched(() => void sent++), refusalMs: 3_600_000 })
    const charge = { customerId, bufferUid: buffer.uid, credits: 3 }
    expect(await node.charge(charge)).to.deep.equal({ paid: false, balance: 2 })
    expect(await node.charge(charge)).to.deep.equal({ paid: false, balance: 2 })
    expect(sent).to.equal(1)
    await db`UPDATE customers SET credits = credits + 1 WHERE customer_id = ${customerId}`
    node.credited(customerId)
    expect(await node.charge(charge)).to.deep.equal({ paid: true })
    expect(await node.charge(charge)).to.deep.equal({ paid: false, balance: 0 })
    node.refund(charge)
    expect(await node.charge(charge)).to.deep.equal({ paid: true })
  })

  it('a customer that waits for Postgres holds up no other', async () => {
    const stuck = await account(5)
    const free = await account(5)
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const apply: CreditStatements['apply'] = async (boot, statement) => {
      if (statement.customerId === stuck.customerId) await gate
      return statements.apply(boot, statement)
    }
    const node = ledger({ statements: { ...watched(() => {}), apply } })
    const waiting = node.charge({ customerId: stuck.customerId, bufferUid: stuck.buffer.uid, credits: 1 })
    const done = await node.charge({ customerId: free.customerId, bufferUid: free.buffer.uid, credits: 1 })
    expect(done.paid).to.equal(true)
    open()
    expect(await waiting).to.deep.equal({ paid: true })
  })

  it('gives up on a database that is away, and charges nothing later', async () => {
    const { customerId, buffer } = await account(10)
    let away = true
    const charges: number[] = []
    const apply: CreditStatements['apply'] = async (boot, statement) => {
      if (away) throw new Error('away')
      charges[statement.number] = statement.runs.count.length
      return statements.apply(boot, statement)
    }
    const node = ledger({ statements: { ...watched(() => {}), apply }, patienceMs: PATIENCE_MS })
    const failed = await failureOf(node.charge({ customerId, bufferUid: buffer.uid, credits: 4 }))
    expect(failed).to.be.instanceOf(LedgerUnavailableError)
    expect(failed.cause).to.have.property('message', 'away')
    away = false
    expect(await node.charge({ customerId, bufferUid: buffer.uid, credits: 1 })).to.deep.equal({ paid: true })
    expect(charges).to.deep.equal([undefined, 0, 1])
    expect(await balanceOf(db, customerId)).to.equal(9)
  })

  it('credits back what was charged by a statement whose answer came too late', async () => {
    const { customerId, buffer } = await account(10)
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    const apply: CreditStatements['apply'] = async (boot, statement) => {
      const answer = await statements.apply(boot, statement)
      if (statement.number === 1) await gate
      return answer
    }
    const node = ledger({ statements: { ...watched(() => {}), apply }, patienceMs: PATIENCE_MS })
    const failed = await failureOf(node.charge({ customerId, bufferUid: buffer.uid, credits: 4 }))
    expect(failed).to.be.instanceOf(LedgerUnavailableError)
    expect(await balanceOf(db, customerId)).to.equal(6)
    open()
    await eventually(async () => (await balanceOf(db, customerId)) === 10)
    expect(await unsettledOf(db, customerId)).to.equal(0)
  })

  it('goes on over a new connection when one hangs', async () => {
    const { customerId, buffer } = await account(10)
    const node = ledger({ statements: client(url, 150), patienceMs: 5_000 })
    const charge = { customerId, bufferUid: buffer.uid, credits: 1 }
    await node.charge(charge)
    // The customer's row is locked: the statement hangs on the server until the lock goes.
    await db.begin(async (transaction) => {
      await transaction`SELECT FROM customers WHERE customer_id = ${customerId} FOR UPDATE`
      const waiting = node.charge(charge)
      await eventually(async () => (await hangingStatements()) >= 2)
      void failureOf(waiting)
    })
    await node.charge(charge)
    await eventually(async () => (await balanceOf(db, customerId)) === 7)
  })

  async function hangingStatements(): Promise<number> {
    const rows = await db`SELECT FROM pg_stat_activity
      WHERE application_name = 'ledger' AND wait_event_type = 'Lock'`
    return rows.length
  }

  it('keeps the sum over connections cut at any byte, 200 rounds', async function () {
    this.timeout(60_000)
    const seed = Number(process.env.PENSTOCK_TEST_SEED ?? Date.now() % 1_000_000)
    const random = seededFractions(seed)
    line = await Line.to(Number(new URL(url).port))
    const node = ledger({ statements: client(line.through(url)) })
    const { customerId, buffer } = await account(1_000_000)
    let spent = 0
    for (let round = 0; round < 200; round++) {
      const there = random() < 0.5
      line.cutAt({
        direction: there ? 'there' : 'back',
        afterBytes: Math.floor(random() * (there ? 300 : 90)),
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
    line.cutAt(null)
    await node.close()
    expect(line.cuts, `seed ${seed}`).to.be.above(100)
    expect(await balanceOf(db, customerId), `seed ${seed}`).to.equal(1_000_000 - spent)
    const [booked] = await db`SELECT sum(amount)::bigint AS sum FROM credit_transactions
      WHERE customer_id = ${customerId}`
    expect(booked?.sum, `seed ${seed}`).to.equal(1_000_000 - spent)
  })

  it('keeps the sum while the server ends its sessions in the middle', async () => {
    const { customerId, buffer } = await account(10_000)
    const node = ledger({ statements: client(url) })
    const charge = { customerId, bufferUid: buffer.uid, credits: 1 }
    let paid = 0
    for (let round = 0; round < 15; round++) {
      const answers = times(20, () => node.charge(charge))
      await db`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ledger'`
      paid += paidOf(await Promise.all(answers))
    }
    expect(paid).to.equal(300)
    await node.reported(customerId)
    expect(await balanceOf(db, customerId)).to.equal(10_000 - 300)
  })

  it('a node that crashed costs its customers nothing', async () => {
    const { customerId, buffer } = await account(100)
    const boot = randomUUID()
    let closed = 0
    const node = ledger({ boot, onClosed: () => closed++ })
    const charge = { customerId, bufferUid: buffer.uid, credits: 5 }
    await Promise.all(times(6, () => node.charge(charge)))
    node.settle(charge)
    node.settle(charge)
    await eventually(async () => (await unsettledOf(db, customerId)) === 20)
    expect(await closeNodes(db, () => true, 0)).to.deep.include({ boot, customerId, credits: 20 })
    expect(await balanceOf(db, customerId)).to.equal(90)
    // Should it live on, it learns that it is gone, and nobody pays.
    const zombie = await Promise.all(times(3, () => failureOf(node.charge(charge))))
    expect(zombie.every((error) => error instanceof LedgerUnavailableError)).to.equal(true)
    expect(closed).to.equal(1)
    expect(await balanceOf(db, customerId)).to.equal(90)
    const [booked] = await db`SELECT sum(amount)::bigint AS sum FROM credit_transactions
      WHERE customer_id = ${customerId}`
    expect(booked?.sum).to.equal(90)
  })

  it('what a crashed node held in advance is free again', async () => {
    const { customerId, buffer } = await account(10_000)
    const boot = randomUUID()
    const node = ledger({ boot, onClosed: () => {} })
    const charge = { customerId, bufferUid: buffer.uid, credits: 1 }
    await Promise.all(times(50, () => node.charge(charge)))
    expect(await advancedOf(customerId)).to.be.above(0)
    await closeNodes(db, () => true, 0)
    expect(await advancedOf(customerId)).to.equal(0)
    expect(await balanceOf(db, customerId)).to.equal(10_000)
  })

  it('closes clean, also under load: nothing is held in advance afterwards', async () => {
    const { customerId, buffer } = await account(10_000)
    const node = ledger()
    const charge = { customerId, bufferUid: buffer.uid, credits: 1 }
    for (let i = 0; i < 4; i++) await Promise.all(times(25, () => node.charge(charge)))
    for (let i = 0; i < 100; i++) node.settle(charge)
    await node.close()
    expect(await balanceOf(db, customerId)).to.equal(9_900)
    expect(await advancedOf(customerId)).to.equal(0)
  })

  it('closes clean: everything settled or credited back, no rows left, no more charges', async () => {
    const { customerId, buffer } = await account(100)
    const node = ledger()
    const charge = { customerId, bufferUid: buffer.uid, credits: 10 }
    await Promise.all(times(4, () => node.charge(charge)))
    node.settle(charge)
    node.settle(charge)
    node.refund(charge)
    await node.close()
    expect(await balanceOf(db, customerId)).to.equal(80)
    const rows = await db`SELECT FROM settlements WHERE customer_id = ${customerId}`
    expect(rows).to.have.length(0)
    expect(await failureOf(node.charge(charge))).to.be.instanceOf(LedgerUnavailableError)
  })
})
