import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Invoice } from '../../internal/domain/model.ts'
import { insertInvoice } from '../support/billing-rows.ts'
import { insertCustomer } from '../support/rows.ts'
import { answers, billingHarnessOfSuite } from './billing-harness.ts'

const LIST = '/v1/admin/invoices'
const foreignQuery = { error: 'customerId differs from the authenticated customer' }

describe('invoices', () => {
  const harness = billingHarnessOfSuite()

  /** Newest first. */
  async function invoiced(count: number): Promise<Invoice[]> {
    const { customerId } = harness
    const { subscriptionId } = await harness.subscribe()
    const invoices: Invoice[] = []
    for (let index = 0; index < count; index++) {
      const createdAt = Date.UTC(2026, 0, 1) + 1_000 * index
      invoices.unshift(
        await insertInvoice(harness.db, { customerId, subscriptionId, createdAt, amount: index }),
      )
    }
    return invoices
  }

  it('are none at first', () => answers(harness.as('viewer').get(LIST), 200, []))

  it('are listed newest first, 50 unless a limit says otherwise', async () => {
    const invoices = await invoiced(52)
    for (const key of ['viewer', 'member', 'admin', 'owner', 'scoped'] as const) {
      await answers(harness.as(key).get(LIST), 200, invoices.slice(0, 50))
    }
    const mine = `customerId=${harness.customerId}`
    await answers(harness.as('viewer').get(`${LIST}?limit=2&${mine}`), 200, invoices.slice(0, 2))
    await answers(harness.as('viewer').get(`${LIST}?limit=500`), 200, invoices)
  })

  it('have a stable order also at the same time', async () => {
    const { customerId } = harness
    const { subscriptionId } = await harness.subscribe()
    const ids = ['in_2', 'in_3', 'in_1'].map((id) => `${id}-${customerId}`)
    for (const invoiceId of ids) {
      await insertInvoice(harness.db, { invoiceId, customerId, subscriptionId, createdAt: 1_000 })
    }
    const { json } = await harness.as('viewer').get(LIST)
    expect((json as Invoice[]).map(({ invoiceId }) => invoiceId)).to.deep.equal(ids.toSorted().toReversed())
  })

  it('are refused with a limit out of range', async () => {
    for (const limit of ['0', '-1', '501', 'NaN', '1.5', '1e2']) {
      const { status, json } = await harness.as('viewer').get(`${LIST}?limit=${limit}`)
      expect(status, limit).to.equal(400)
      expect((json as { error: string }).error).to.match(/^limit /)
    }
    await answers(harness.as('viewer').get(`${LIST}?customerId=other`), 403, foreignQuery)
  })

  it('are read one by one, in every state', async () => {
    const { customerId } = harness
    const { subscriptionId } = await harness.subscribe()
    for (const status of ['open', 'paid', 'void', 'refunded'] as const) {
      const paidAt = status === 'open' ? null : Date.UTC(2026, 0, 2)
      const invoice = await insertInvoice(harness.db, { customerId, subscriptionId, status, paidAt })
      await answers(harness.as('viewer').get(`${LIST}/${invoice.invoiceId}`), 200, invoice)
    }
  })

  it('are 403 of another customer, and 404 when there are none', async () => {
    const other = await insertCustomer(harness.db)
    const { subscriptionId } = await harness.subscribe({ customerId: other })
    const { invoiceId } = await insertInvoice(harness.db, { customerId: other, subscriptionId })
    const foreign = { error: 'Invoice belongs to another customer' }
    for (const key of ['viewer', 'owner', 'scoped'] as const) {
      await answers(harness.as(key).get(`${LIST}/${invoiceId}`), 403, foreign)
      for (const id of ['none', 'a%2fb', '%00', 'x'.repeat(200)]) {
        await answers(harness.as(key).get(`${LIST}/${id}`), 404, { error: 'Invoice not found' })
      }
    }
    await answers(harness.as('owner').get(`${LIST}/none?customerId=other`), 403, foreignQuery)
    await answers(harness.as('owner').get(LIST), 200, [])
  })
})
