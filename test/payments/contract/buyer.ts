/** A provider with the service in front of it, and a customer who buys there: a new one a test. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import type { PaymentProvider } from '../../../internal/billing/ports.ts'
import { createProviderEvents, type ProviderEvents } from '../../../internal/billing/provider-events.ts'
import { createProviderSweep } from '../../../internal/billing/provider-sweep.ts'
import type { Invoice, Subscription } from '../../../internal/domain/model.ts'
import type { Database } from '../../../internal/postgres/connection.ts'
import { createReadingLog } from '../../../internal/postgres/provider-readings.ts'
import { createProviderSweeps } from '../../../internal/postgres/provider-sweeps.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { type Admin, adminOf } from '../../http/caller.ts'
import type { TestService } from '../../http/service.ts'
import { eventually } from '../../support/eventually.ts'

export type Outcome = 'pays' | 'pays-late' | 'fails' | 'abandons'
/** What becomes of the difference that another plan costs. */
export type ChangeOutcome = 'pays' | 'pays-late' | 'fails'
export type Action = 'cancel' | 'cancel-now' | 'resume' | 'fail-payment' | 'change-plan'

/**
 * A provider with the service in front of it. On sale: the plans `basic` (1000 cents, 100 credits) and `large` (5000 cents,
 * 1000 credits), the pack `fifty` (50 credits for 500 cents).
 */
export interface World {
  readonly provider: PaymentProvider
  readonly service: TestService
  readonly db: Database
  /** Lines that the service wrote of what the provider told. */
  readonly reported: string[]
  /** What a customer does on the page of a checkout. */
  pay(url: string, outcome: Outcome, choice?: { amountInCents?: number; taxInCents?: number }): Promise<void>
  /** The provider's clock. */
  advance(days: number): Promise<void>
  /** At the provider's own site. */
  act(subscriptionId: string, action: Action, planId?: string, outcome?: ChangeOutcome): Promise<void>
  /** Of an invoice; of a pack also its checkout is needed. Default: all that is left. */
  refund(invoiceId: string, checkoutUrl: string | undefined, amountInCents?: number): Promise<void>
  dispute(invoiceId: string, outcome: 'lost' | 'won'): Promise<void>
  /** A test begins. */
  begin(): Promise<void>
  /** Tells all events since then again. */
  repeatAll(): Promise<void>
  /** From now on events get lost. */
  losing(isLosing: boolean): void
  close(): Promise<void>
}

export const PLAN = (planId: string) => `/v1/admin/subscription/checkout-url?planId=${planId}`
export const PACK = '/v1/admin/credit-packs/fifty/checkout-url'
export const SUBSCRIPTION = '/v1/admin/subscription'

export class Buyer {
  world!: World
  api!: Admin
  customerId!: string

  async begin(): Promise<void> {
    this.world.losing(false)
    await this.world.begin()
    this.world.reported.length = 0
    this.customerId = `customer-${randomUUID()}`
    this.api = adminOf(this.world.service.url, await this.world.service.ownerKey(this.customerId))
  }

  async page(path: string): Promise<string> {
    const { status, json, text } = await this.api.get(path)
    expect(status, text).to.equal(200)
    return (json as { checkoutUrl: string }).checkoutUrl
  }

  async get<T>(path: string): Promise<T> {
    return (await this.api.get(path)).json as T
  }

  async current(): Promise<Subscription | null> {
    return (await this.get<{ subscription: Subscription | null }>(SUBSCRIPTION)).subscription
  }

  async credits(): Promise<number> {
    return (await this.get<{ credits: number }>('/v1/admin/credits')).credits
  }

  invoices(): Promise<Invoice[]> {
    return this.get<Invoice[]>('/v1/admin/invoices')
  }

  async debt(): Promise<number> {
    const [row] = await this.world.db<{ credit_debt: number }[]>`
      SELECT credit_debt FROM customers WHERE customer_id = ${this.customerId}`
    return row!.credit_debt
  }

  /** Waits until the subscription is in this state; null: there is none. */
  is(status: string | null): Promise<unknown> {
    return eventually(async () => expect((await this.current())?.status ?? null).to.equal(status))
  }

  /** Waits until the balance is this. */
  has(balance: number): Promise<unknown> {
    return eventually(async () => expect(await this.credits()).to.equal(balance))
  }

  /** Answers its id. */
  async subscribe(planId = 'basic', choice = {}): Promise<string> {
    await this.world.pay(await this.page(PLAN(planId)), 'pays', choice)
    await this.is('ACTIVE')
    await eventually(async () =>
      expect((await this.invoices()).map((each) => each.status)).to.include('paid'),
    )
    return (await this.current())!.subscriptionId
  }

  node(): ProviderEvents {
    return createProviderEvents({
      provider: this.world.provider,
      log: createReadingLog(this.world.db),
      credited: () => {},
      reports: { unusable() {}, stranger() {}, secondSubscription() {} },
    })
  }

  /** Of all that the provider has. */
  async sweep(): Promise<void> {
    await this.world.db`DELETE FROM provider_sweeps`
    await createProviderSweep({
      provider: this.world.provider,
      sweeps: createProviderSweeps(this.world.db),
      events: this.node(),
      clock: systemClock(),
      onFailed: (error) => expect.fail(String(error)),
    }).run()
  }
}
