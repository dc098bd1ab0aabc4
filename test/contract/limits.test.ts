import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { type Admin, adminOf, bufferBody } from '../http/caller.ts'
import { startService, type TestService } from '../http/service.ts'
import { insertInvoice, insertPlan, insertSubscription } from '../support/billing-rows.ts'

/** docs/reference/api.md, "Limits", over HTTP: the default, both bounds, and one past each of them. */

type Bounds = readonly [field: string, least: number, most: number, initial: number]

/** The least, the most and the default of each field. */
const bounds: readonly Bounds[] = [
  ['batch.maxItems', 1, 10_000, 50],
  ['batch.maxBytes', 1, 16_777_216, 262_144],
  ['batch.idleTimeoutMs', 100, 604_800_000, 5_000],
  ['batch.maxWaitFromFirstMs', 100, 604_800_000, 15_000],
  ['overflow.maxGroupItems', 1, 1_000_000, 2_000],
  ['overflow.maxGroupBytes', 1, 1_073_741_824, 5_242_880],
  ['throughput.maxAttempts', 1, 5, 3],
  ['throughput.backoff.maxMs', 0, 86_400_000, 60_000],
  ['throughput.backoff.initialMs', 0, 86_400_000, 1_000],
  ['throughput.backoff.multiplier', 1, 100, 2],
  ['throughput.minDelayBetweenFlushMs', 0, 86_400_000, 0],
  ['throughput.maxConcurrencyPerGroup', 1, 100, 1],
  ['dlqPauseThreshold', 1, 10, 3],
]

describe('documented limits', () => {
  let service: TestService
  let owner: Admin

  before(async () => {
    service = await startService()
    owner = adminOf(service.url, await service.ownerKey('acme'))
    await owner.post('/v1/admin/projects', { projectId: 'p', name: 'P' })
  })
  after(() => service.stop())

  for (const [field, least, most, initial] of bounds) {
    it(`${field}: ${least} to ${most}, default ${initial}`, async () => {
      const made = await owner.post('/v1/admin/buffers', bufferBody(`b-${randomUUID()}`, 'p'))
      expect(made.json).to.nested.include({ [field]: initial })
      const { bufferId } = made.json as { bufferId: string }
      for (const value of [least, most]) {
        const answer = await create(field, value)
        expect(answer.status, answer.text).to.equal(201)
        expect(answer.json).to.nested.include({ [field]: value })
      }
      const type = field.endsWith('multiplier') ? 'a number' : 'an integer'
      for (const value of [least - 1, most + 1, String(least), null, true, [least]]) {
        const refused = await create(field, value)
        expect([refused.status, refused.json], String(value)).to.deep.equal([
          400,
          { error: `${field} must be ${type} from ${least} to ${most}` },
        ])
        const patch = await owner.patch(`/v1/admin/buffers/${bufferId}`, nested(field, value))
        // In a merge patch null is no value: the default comes back.
        expect(patch.status, String(value)).to.equal(value === null ? 200 : 400)
      }
      expect((await owner.get(`/v1/admin/buffers/${bufferId}`)).json).to.nested.include({ [field]: initial })
    })
  }

  function create(field: string, value: unknown) {
    // A first delay may not exceed the longest, so both ends of the one need room in the other.
    const room = field === 'throughput.backoff.maxMs' ? { initialMs: 0 } : { initialMs: 0, maxMs: 86_400_000 }
    const config = merged({ throughput: { backoff: room } }, nested(field, value))
    return owner.post('/v1/admin/buffers', bufferBody(`b-${randomUUID()}`, 'p', config))
  }

  it('10 active API keys', async () => {
    const boss = adminOf(service.url, await service.ownerKey('keys'))
    const ids: string[] = []
    for (let n = 2; n <= 10; n++) {
      const { status, json } = await boss.post('/v1/admin/api-keys', { name: `key ${n}` })
      expect(status).to.equal(201)
      ids.push((json as { keyId: string }).keyId)
    }
    const eleventh = await boss.post('/v1/admin/api-keys', { name: 'key 11' })
    expect([eleventh.status, eleventh.json]).to.deep.equal([
      409,
      { error: 'Account already has 10 active API keys' },
    ])
    expect((await boss.get('/v1/admin/api-keys')).json).to.have.length(10)
    expect((await boss.delete(`/v1/admin/api-keys/${ids[0]}`)).status).to.equal(204)
    expect((await boss.post('/v1/admin/api-keys', { name: 'key 11' })).status).to.equal(201)
  })

  it('100 characters in the name of an API key', async () => {
    const boss = adminOf(service.url, await service.ownerKey('names'))
    expect((await boss.post('/v1/admin/api-keys', { name: 'n'.repeat(100) })).status).to.equal(201)
    for (const name of ['n'.repeat(101), '']) {
      const { status, json } = await boss.post('/v1/admin/api-keys', { name })
      expect([status, json]).to.deep.equal([400, { error: 'name must have 1 to 100 characters' }])
    }
    expect((await boss.get('/v1/admin/api-keys')).json).to.have.length(2)
  })

  it('amount of a grant: 1 to 100000', async () => {
    const boss = adminOf(service.url, await service.ownerKey('grants'))
    const before = (await boss.get('/v1/admin/credits')).json as { credits: number }
    for (const amount of [1, 100_000]) {
      expect((await boss.post('/v1/admin/credits/add', { amount })).status).to.equal(200)
    }
    for (const amount of [0, 100_001, -1, 1.5, '1', null]) {
      const { status, json } = await boss.post('/v1/admin/credits/add', { amount })
      const error = 'amount must be an integer from 1 to 100000'
      expect([status, json], String(amount)).to.deep.equal([400, { error }])
    }
    const now = (await boss.get('/v1/admin/credits')).json as { credits: number }
    expect(now.credits - before.credits).to.equal(100_001)
  })

  describe('limit of', () => {
    const lists: readonly [path: string, initial: number, fill: (customerId: string) => Promise<unknown>][] =
      [
        ['/v1/dlq', 100, fillDeadLetters],
        ['/v1/admin/credits/transactions', 50, fillTransactions],
        ['/v1/admin/invoices', 50, fillInvoices],
      ]
    for (const [path, initial, fill] of lists) {
      it(`GET ${path}: 1 to 500, default ${initial}`, async () => {
        const customerId = `customer-${randomUUID()}`
        const boss = adminOf(service.url, await service.ownerKey(customerId))
        await fill(customerId)
        const lengthOf = async (query: string) => {
          const { status, json, text } = await boss.get(`${path}?customerId=${customerId}${query}`)
          expect(status, text).to.equal(200)
          const { transactions = json } = json as { transactions?: unknown }
          return (transactions as unknown[]).length
        }
        expect(await lengthOf('')).to.equal(initial)
        expect(await lengthOf('&limit=1')).to.equal(1)
        expect(await lengthOf('&limit=500')).to.equal(500)
        for (const limit of ['0', '-1', '501', 'NaN', '', '1.0', '1e1', '+1', ' 1', '0x1', '1,2']) {
          const { status, json } = await boss.get(
            `${path}?customerId=${customerId}&limit=${encodeURIComponent(limit)}`,
          )
          const error = 'limit must be an integer from 1 to 500'
          expect([status, json], limit).to.deep.equal([400, { error }])
        }
        const twice = await boss.get(`${path}?customerId=${customerId}&limit=1&limit=1`)
        expect(twice.json).to.deep.equal({ error: 'Query parameter limit must be given once' })
      })
    }
  })

  /** One more than the most that is answered. */
  const MANY = 501

  function fillDeadLetters(customerId: string): Promise<unknown> {
    return service.db`INSERT INTO dlq_items (dlq_id, customer_id, project_id, buffer_id, buffer_uid, group_id,
        version, group_key, reason, last_error, last_status_code, attempt, item_count, message_ids,
        first_payload_preview, segment, first_item_at, last_activity_at, payload_bytes, body, body_sha256, created_at)
      SELECT ${customerId} || n, ${customerId}, 'p', 'b', gen_random_uuid(), ${customerId} || n, n, '"k"',
        'max_retries_exceeded', 'HTTP 500', 500, 2, 1, '["m"]', '"1"', 0, 1, 2, 1, NULL, decode(repeat('00', 32), 'hex'), n
      FROM generate_series(1, ${MANY}::int) AS n`
  }

  function fillTransactions(customerId: string): Promise<unknown> {
    return service.db`INSERT INTO credit_transactions (customer_id, amount, type, description, balance_after)
      SELECT ${customerId}, 1, 'grant', 'Gift', n FROM generate_series(1, ${MANY}::int) AS n`
  }

  async function fillInvoices(customerId: string): Promise<void> {
    const { planId } = await insertPlan(service.db)
    const { subscriptionId } = await insertSubscription(service.db, { customerId, planId })
    const invoice = { customerId, subscriptionId }
    await Promise.all(Array.from({ length: MANY }, () => insertInvoice(service.db, invoice)))
  }
})

/** `{a: {b: value}}` for `a.b`. */
function nested(field: string, value: unknown): Record<string, unknown> {
  const [name = '', ...rest] = field.split('.')
  return { [name]: rest.length === 0 ? value : nested(rest.join('.'), value) }
}

function merged(left: Record<string, unknown>, right: Record<string, unknown>): Record<string, unknown> {
  const result = { ...left }
  for (const [name, value] of Object.entries(right)) {
    const both = isObject(value) && isObject(left[name])
    result[name] = both ? merged(left[name] as never, value as never) : value
  }
  return result
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
