import { expect } from 'chai'
import { after, afterEach, before, beforeEach } from 'mocha'
import type { Plan, Subscription } from '../../internal/domain/model.ts'
import type { Database } from '../../internal/postgres/connection.ts'
import { insertPack, insertPlan, insertSubscription } from '../support/billing-rows.ts'
import { RecordingProvider } from '../support/recording-provider.ts'
import { freshDatabase } from '../support/servers.ts'
import { type Admin, type Answer, adminOf } from './caller.ts'
import { startService, type TestService } from './service.ts'

type Key = 'viewer' | 'member' | 'admin' | 'owner' | 'scoped'

/**
 * One database with something on sale, and two services over it: one with a payment provider, one without.
 * `customerId` is a new customer in every test.
 */
export class BillingHarness {
  provider = new RecordingProvider()
  customerId!: string
  plan!: Plan
  #selling!: TestService
  #bare!: TestService
  #keys!: Record<Key, string>

  get db(): Database {
    return this.#selling.db
  }

  get url(): string {
    return this.#selling.url
  }

  async open(): Promise<void> {
    const databaseUrl = await freshDatabase()
    this.#selling = await startService({ databaseUrl, provider: this.provider, initialCredits: 100 })
    this.#bare = await startService({ databaseUrl })
    const prices = { BRL: 1_000, USD: 200 }
    this.plan = await insertPlan(this.db, { planId: 'basic', name: 'Basic', prices, offerId: 'offer-basic' })
    await insertPlan(this.db, { planId: 'bare', creditsPerCycle: 1_000, prices: { BRL: 9_000 } })
    await insertPlan(this.db, {
      planId: 'gone',
      creditsPerCycle: 2_000,
      isActive: false,
      offerId: 'offer-gone',
    })
    await insertPack(this.db, { packId: 'fifty', credits: 50, offerId: 'offer-fifty' })
    await insertPack(this.db, { packId: 'later', credits: 500 })
    await insertPack(this.db, { packId: 'old', credits: 70, isActive: false, offerId: 'offer-old' })
  }

  async newCustomer(): Promise<void> {
    Object.assign(this.provider, { failing: false, afterYes: async () => {} })
    this.provider.asked.length = 0
    this.provider.unknownOffers.clear()
    this.customerId = `customer-${crypto.randomUUID()}`
    const owner = await this.#selling.ownerKey(this.customerId)
    const boss = adminOf(this.#selling.url, owner)
    const projectId = `project-${this.customerId}`
    await made(boss.post('/v1/admin/projects', { projectId, name: 'P' }))
    const keyed = async (fields: object) => {
      const { json } = await made(boss.post('/v1/admin/api-keys', { name: 'key', ...fields }))
      return (json as { secret: string }).secret
    }
    this.#keys = {
      owner,
      viewer: await keyed({ role: 'viewer' }),
      member: await keyed({ role: 'member' }),
      admin: await keyed({ role: 'admin' }),
      scoped: await keyed({ role: 'owner', projectIds: [projectId] }),
    }
  }

  /** Of the customer, with a payment provider. */
  as(key: Key): Admin {
    return adminOf(this.#selling.url, this.#keys[key])
  }

  /** The same, without one. */
  withoutProvider(key: Key = 'owner'): Admin {
    return adminOf(this.#bare.url, this.#keys[key])
  }

  /** The customer's, to the plan `basic`. */
  subscribe(fields: Partial<Subscription> & { createdAt?: number } = {}): Promise<Subscription> {
    return insertSubscription(this.db, { customerId: this.customerId, planId: 'basic', ...fields })
  }

  /** As the customer reads it. */
  async current(): Promise<Subscription | null> {
    const { json } = await this.as('viewer').get('/v1/admin/subscription')
    return (json as { subscription: Subscription | null }).subscription
  }

  failures(): unknown[] {
    return [...this.#selling.told.failed, ...this.#bare.told.failed]
  }

  async close(): Promise<void> {
    await this.#selling.stop()
    await this.#bare.stop()
  }
}

async function made(answer: Promise<Answer>): Promise<Answer> {
  const made = await answer
  expect(made.status, made.text).to.equal(201)
  return made
}

/** An answer of exactly this status and body. */
export async function answers(answer: Promise<Answer>, status: number, body: unknown): Promise<void> {
  const { status: got, json, text } = await answer
  expect(got, text).to.equal(status)
  expect(json).to.deep.equal(body)
}

/** 403 of a caller without the role. */
export async function deniesRole(answer: Promise<Answer>, roles: string): Promise<void> {
  const message = `Requires one of the following roles: ${roles}`
  await answers(answer, 403, { error: 'Forbidden', message })
}

/** A harness for the suite that calls this; no test of it may end with an answer of 500. */
export function billingHarnessOfSuite(): BillingHarness {
  const harness = new BillingHarness()
  before(() => harness.open())
  beforeEach(() => harness.newCustomer())
  afterEach(() => expect(harness.failures()).to.deep.equal([]))
  after(() => harness.close())
  return harness
}
