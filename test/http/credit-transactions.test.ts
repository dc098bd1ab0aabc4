import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { CreditTransaction } from '../../internal/domain/model.ts'
import { answers, billingHarnessOfSuite } from './billing-harness.ts'
import { bufferBody, call } from './caller.ts'

const LIST = '/v1/admin/credits/transactions'

describe('credit transactions', () => {
  const harness = billingHarnessOfSuite()

  async function list(query = ''): Promise<CreditTransaction[]> {
    const { status, json } = await harness.as('viewer').get(LIST + query)
    expect(status).to.equal(200)
    expect(json).to.have.all.keys('transactions')
    return (json as { transactions: CreditTransaction[] }).transactions
  }

  it('begin with the initial grant', async () => {
    const [first, ...rest] = await list()
    expect(rest).to.deep.equal([])
    expect(first).to.have.all.keys(
      ...['transactionId', 'customerId', 'amount', 'type', 'description', 'balanceAfter', 'createdAt'],
    )
    expect(first).to.include({
      customerId: harness.customerId,
      amount: 100,
      type: 'grant',
      description: 'Initial credits',
      balanceAfter: 100,
    })
    expect(first?.createdAt).to.be.closeTo(Date.now(), 60_000)
  })

  it('have one of consumption for each buffer and minute, and add up to the balance', async () => {
    const projectId = `project-${harness.customerId}`
    const buffers = ['a', 'b'].map((name) => `${name}-${harness.customerId}`)
    for (const bufferId of buffers) {
      const { status, text } = await harness
        .as('owner')
        .post('/v1/admin/buffers', bufferBody(bufferId, projectId))
      expect(status, text).to.equal(201)
    }
    const send = async (bufferId: string) => {
      const url = `${harness.url}/v1/ingest/${projectId}/${bufferId}`
      expect((await call(url, { method: 'POST', body: '{"customer":"x"}' })).status).to.equal(202)
    }
    for (let round = 0; round < 10; round++) for (const bufferId of buffers) await send(bufferId)
    await harness.as('owner').post('/v1/admin/credits/add', { amount: 7 })
    for (const bufferId of buffers) await send(bufferId)

    const transactions = await list()
    const consumed = transactions.filter(({ type }) => type === 'consumption')
    for (const bufferId of buffers) {
      const own = consumed.filter(({ description }) => description.endsWith(bufferId))
      // One, or two where the minute turned meanwhile.
      expect(own.length).to.be.within(1, 2)
      expect(own.every(({ amount }) => amount < 0)).to.equal(true)
      expect(own.reduce((sum, { amount }) => sum + amount, 0)).to.equal(-11)
    }
    const { json } = await harness.as('viewer').get('/v1/admin/credits')
    expect(json).to.include({ credits: 100 + 7 - 22 })
    expect(transactions[0]?.balanceAfter).to.equal(85)
    transactions.forEach(({ balanceAfter, amount }, index) => {
      expect(balanceAfter - amount).to.equal(transactions[index + 1]?.balanceAfter ?? 0)
    })
  })

  it('are listed newest first, 50 unless a limit says otherwise', async () => {
    for (let amount = 1; amount <= 51; amount++) {
      await harness.db`INSERT INTO credit_transactions (customer_id, amount, type, description, balance_after, created_at)
        VALUES (${harness.customerId}, 0, 'grant', ${String(amount)}, 0, ${new Date(Date.UTC(2026, 0, amount))})`
    }
    expect(await list()).to.have.length(50)
    expect(await list(`?limit=500&customerId=${harness.customerId}`)).to.have.length(52)
    const newest = await list('?limit=3')
    expect(newest.map(({ description }) => description)).to.include('Initial credits')
    for (const key of ['viewer', 'member', 'admin', 'owner'] as const) {
      await answers(harness.as(key).get(`${LIST}?limit=3`), 200, { transactions: newest })
    }
    await answers(harness.withoutProvider('viewer').get(`${LIST}?limit=3`), 200, { transactions: newest })
  })

  it('are refused to a key that is limited to projects', async () => {
    await answers(harness.as('scoped').get(LIST), 403, {
      error: 'A project-scoped key cannot read credit transactions',
    })
  })

  it('are refused with a limit out of range, and of another customer', async () => {
    for (const limit of ['0', '-1', '501', 'NaN', '1.5', '1e2']) {
      const { status, json } = await harness.as('viewer').get(`${LIST}?limit=${limit}`)
      expect(status, limit).to.equal(400)
      expect((json as { error: string }).error).to.match(/^limit /)
    }
    await answers(harness.as('viewer').get(`${LIST}?customerId=other`), 403, {
      error: 'customerId differs from the authenticated customer',
    })
    expect((await call(harness.url + LIST)).status).to.equal(401)
  })
})
