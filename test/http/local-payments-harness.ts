/** The local payment provider over HTTP, on a real Postgres. */
import { createHealth } from '../../internal/http/health.ts'
import { type Listener, listen } from '../../internal/http/listener.ts'
import { localPaymentRoutes } from '../../internal/http/local-payments.ts'
import { createHandler } from '../../internal/http/server.ts'
import type { LocalProvider } from '../../internal/payments/local/local-provider.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { localProviderOver, publishDefaultCatalogue, Told } from '../support/local-payments.ts'
import { freshDatabase } from '../support/servers.ts'
import { type Answer, call } from './caller.ts'

export const FORM = 'application/x-www-form-urlencoded'

/** Paths. */
export interface Bought {
  subscription: string
  payment: string
  paymentId: string
}

export class LocalPaymentsHarness {
  readonly db: Database
  readonly told: Told
  readonly provider: LocalProvider
  readonly listener: Listener

  private constructor(db: Database, told: Told, provider: LocalProvider, listener: Listener) {
    this.db = db
    this.told = told
    this.provider = provider
    this.listener = listener
  }

  static async start(): Promise<LocalPaymentsHarness> {
    const clock = systemClock()
    const db = connect(await freshDatabase(), { max: 6 })
    await publishDefaultCatalogue(db)
    const told = new Told()
    const provider = localProviderOver(db, told)
    const gate = { closing: false }
    const handler = createHandler({
      telemetry: { failed: () => {}, limited: () => {}, refused: () => {} },
      gate,
      isOutage: () => false,
      version: '0.0.0',
      health: createHealth(clock, '0', {}),
      others: [localPaymentRoutes({ provider, clock, host: '127.0.0.1' })],
    })
    const listener = await listen(clock, handler, gate, { host: '127.0.0.1', port: 0 })
    return new LocalPaymentsHarness(db, told, provider, listener)
  }

  async stop(): Promise<void> {
    await this.listener.close()
    await this.db.end()
  }

  /** Nothing was ever bought. */
  async reset(): Promise<void> {
    await this.db`UPDATE local_payments SET document = NULL`
    this.told.notifications.length = 0
  }

  get(path: string, headers: Record<string, string> = { accept: 'application/json' }): Promise<Answer> {
    return call(this.listener.url + path, { headers })
  }

  /** `body`: a text is sent as it is. */
  post(path: string, body: unknown = {}, headers: Record<string, string> = {}): Promise<Answer> {
    return call(this.listener.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  }

  /** As a form of a page. */
  submit(path: string, fields: Record<string, string>): Promise<Answer> {
    return this.post(path, new URLSearchParams(fields).toString(), { 'content-type': FORM })
  }

  /** The path of a checkout. */
  async open(item: { planId: string } | { packId: string }, customerId = 'ada'): Promise<string> {
    const url = await this.provider.checkoutUrl(
      'planId' in item
        ? { buys: 'plan', planId: item.planId, customerId, offerId: null }
        : { buys: 'pack', packId: item.packId, customerId, offerId: null },
    )
    return new URL(url!).pathname
  }

  /** A plan of `ada`. */
  async bought(): Promise<Bought> {
    await this.post(await this.open({ planId: 'starter' }), { outcome: 'pays' })
    const { payments, subscriptions } = await this.provider.list('ada')
    const [{ paymentId }, { subscriptionId }] = [payments[0]!, subscriptions[0]!]
    return {
      subscription: `/local/payments/subscriptions/${subscriptionId}`,
      payment: `/local/payments/${paymentId}`,
      paymentId,
    }
  }

  /** The provider's whole document. */
  async document(): Promise<string> {
    const [row] = await this.db`SELECT document::text AS text FROM local_payments`
    return row!.text
  }
}
