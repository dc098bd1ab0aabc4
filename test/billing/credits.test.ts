import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import { createCredits } from '../../internal/billing/credits.ts'
import { CreditLedger } from '../../internal/billing/ledger.ts'
import { ServiceError } from '../../internal/domain/errors.ts'
import type { Principal } from '../../internal/domain/principal.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createCreditAccounts } from '../../internal/postgres/credits.ts'
import { PostgresCreditStatements } from '../../internal/postgres/ledger.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { insertBuffer, insertCustomer } from '../support/rows.ts'
import { freshDatabase } from '../support/servers.ts'

describe('billing: balances and grants', () => {
  let url: string
  let db: Database
  let principal: Principal
  const raised: string[] = []

  before(async () => {
    url = await freshDatabase()
    db = connect(url)
  })

  after(() => db.end())

  beforeEach(async () => {
    raised.length = 0
    principal = { customerId: await insertCustomer(db, 40), role: 'admin', via: 'key' }
  })

  const credits = (local = true) =>
    createCredits({ accounts: createCreditAccounts(db), local, credited: (id) => raised.push(id) })

  const refusal = (running: Promise<unknown>) =>
    running.then(
      () => undefined,
      (error: unknown) => (error instanceof ServiceError ? error.status : error),
    )

  it('reads the balance and what was used this month', async () => {
    const { customerId } = principal
    await db`UPDATE customers SET credits_used_this_month = 7, credit_limit = 50, last_reset_at = now()
      WHERE customer_id = ${customerId}`
    const read = await credits().read(principal)
    expect(read).to.include({ customerId, credits: 40, creditLimit: 50, creditsUsedThisMonth: 7 })
    expect(read.lastResetAt).to.be.closeTo(Date.now(), 60_000)
  })

  it('nothing is used yet in a month without a charge', async () => {
    await db`UPDATE customers SET credits_used_this_month = 7, last_reset_at = '2020-02-01T00:00:00Z'
      WHERE customer_id = ${principal.customerId}`
    const read = await credits().read(principal)
    const now = new Date()
    expect(read.creditsUsedThisMonth).to.equal(0)
    expect(read.lastResetAt).to.equal(Date.UTC(now.getUTCFullYear(), now.getUTCMonth()))
  })

  it('adds credits as one grant', async () => {
    const { customerId } = principal
    const added = await credits().add(principal, { amount: 100_000 })
    expect(added).to.deep.equal({ customerId, creditsAdded: 100_000, newBalance: 100_040 })
    const booked = await db`SELECT amount, type, balance_after FROM credit_transactions
      WHERE customer_id = ${customerId} AND amount = 100000`
    expect([...booked]).to.deep.equal([{ amount: 100_000, type: 'grant', balance_after: 100_040 }])
    expect(raised).to.deep.equal([customerId])
  })

  for (const amount of [0, -1, 100_001, 1.5, Number.NaN, '5', null, undefined, true, [5]]) {
    it(`refuses the amount ${JSON.stringify(amount)} (${typeof amount})`, async () => {
      expect(await refusal(credits().add(principal, { amount }))).to.equal(400)
      expect((await credits().read(principal)).credits).to.equal(40)
    })
  }

  it('adds nothing outside the local instance', async () => {
    expect(await refusal(credits(false).add(principal, { amount: 5 }))).to.equal(404)
    expect((await credits().read(principal)).credits).to.equal(40)
  })

  it('knows no account of an unknown customer', async () => {
    const nobody: Principal = { ...principal, customerId: 'nobody' }
    expect(await refusal(credits().read(nobody))).to.equal(404)
    expect(await refusal(credits().add(nobody, { amount: 5 }))).to.equal(404)
  })

  it('what was added can be spent at once, after a refusal too', async () => {
    const { customerId } = principal
    const { uid } = await insertBuffer(db, customerId)
    const statements = new PostgresCreditStatements({ open: () => connect(url, { max: 1 }) })
    const ledger = new CreditLedger({
      boot: randomUUID(),
      statements,
      clock: systemClock(),
      unavailable: (message) => new Error(message),
      onClosed: () => {},
      onProblem: () => {},
      refusalMs: 3_600_000,
    })
    const own = createCredits({
      accounts: createCreditAccounts(db),
      local: true,
      credited: (id) => ledger.credited(id),
    })
    const charge = { customerId, bufferUid: uid, credits: 50 }
    expect(await ledger.charge(charge)).to.deep.equal({ paid: false, balance: 40 })
    await own.add(principal, { amount: 10 })
    expect(await ledger.charge(charge)).to.deep.equal({ paid: true })
    await ledger.close()
    await statements.end()
  })
})
