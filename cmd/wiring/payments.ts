/** The payment provider of a process that serves the management API: what it is asked, what it tells, and its sweep. */
import type { Meter } from '@opentelemetry/api'
import type { Middleware } from 'koa'
import { createNotifications, type Notifications } from '../../internal/billing/notifications.ts'
import type { CatalogueStore, PaymentProvider, ProviderCustomers } from '../../internal/billing/ports.ts'
import { createProviderEvents } from '../../internal/billing/provider-events.ts'
import { createProviderSweep, type ProviderSweep } from '../../internal/billing/provider-sweep.ts'
import { BodyShares } from '../../internal/http/body-shares.ts'
import { paymentRoute } from '../../internal/http/payments.ts'
import { createCatalogueStore } from '../../internal/postgres/catalogue.ts'
import { createProviderCustomers } from '../../internal/postgres/provider-customers.ts'
import { createReadingLog } from '../../internal/postgres/provider-readings.ts'
import { createProviderSweeps } from '../../internal/postgres/provider-sweeps.ts'
import { Rounds } from '../../internal/runtime/rounds.ts'
import { createPaymentTelemetry, type PaymentTelemetry } from '../../internal/telemetry/payment-telemetry.ts'
import type { StripeConfig } from '../config/config.ts'
import type { Node, Store } from './foundation.ts'
import type { LedgerOfNode } from './reported.ts'
import { stripeCustomers } from './stripe-mode.ts'

/**
 * Of notifications that arrive. They are not of the budget of webhooks: anybody can send one, and the signature is known to
 * be good when the whole body is there. Bytes.
 */
const BODIES_BYTES = 16_000_000
/** A sweep that failed is tried again after so long, and one that is due is noticed, ms. */
const ROUND_EVERY_MS = 60_000

export interface Payments {
  readonly provider: PaymentProvider
  /** What the provider sends, and what it shows itself. */
  readonly routes: readonly Middleware[]
}

/** What a provider that is part of the program needs of it. */
export interface ProviderParts {
  readonly store: Store
  readonly catalogue: Pick<CatalogueStore, 'plans' | 'packs'>
  readonly customers: ProviderCustomers
  /** Of what it tells; to be called once everything is joined. */
  readonly notifications: () => Notifications
  /** Where this process listens, once it does. */
  readonly address: () => string
}

/** A provider that is part of the program, with routes of its own. */
export type OwnProvider = (node: Node, parts: ProviderParts) => Payments | undefined

export interface PaymentOptions {
  readonly meter: Meter
  readonly ledger: LedgerOfNode
  /** Where this process listens, once it does. */
  readonly address: () => string
  /** For an installation that is configured with no other. */
  readonly own: OwnProvider | undefined
}

/** undefined: this installation has no payment provider. */
export async function openPayments(
  node: Node,
  store: Store,
  options: PaymentOptions,
): Promise<Payments | undefined> {
  const { clock, log, config } = node
  let notifications: Notifications | undefined
  const parts: ProviderParts = {
    store,
    catalogue: createCatalogueStore(store.db),
    customers: createProviderCustomers(store.db),
    notifications: () => notifications!,
    address: options.address,
  }
  let telemetry: PaymentTelemetry | undefined
  const opened = config.stripe
    ? await stripe(config.stripe, node, parts, (event) => telemetry?.customerReplaced(event))
    : options.own?.(node, parts)
  if (opened === undefined) return undefined
  const { provider } = opened
  let sweep: ProviderSweep | undefined
  telemetry = createPaymentTelemetry(log, options.meter, clock, () => sweep?.lagMs() ?? 0)
  const events = createProviderEvents({
    provider,
    log: createReadingLog(store.db),
    credited: (customerId) => options.ledger.credited(customerId),
    reports: telemetry,
  })
  notifications = createNotifications({ provider, events, clock })
  const onFailed = telemetry.sweepFailed
  sweep = createProviderSweep({ provider, sweeps: createProviderSweeps(store.db), events, clock, onFailed })
  await startSweep(node, sweep, telemetry)
  const isTold = config.stripe !== undefined && config.stripe.webhookSecrets.length > 0
  const { name } = provider
  const route = {
    name,
    notifications,
    clock,
    bodies: new BodyShares(BODIES_BYTES, clock),
    onRefused: telemetry.refused,
  }
  return { provider, routes: [...opened.routes, ...(isTold ? [paymentRoute(route)] : [])] }
}

/** Its package is loaded where it is used alone. Rejects with ConfigError as `stripeCustomers`. */
async function stripe(
  { key, webhookSecrets, returnUrl, origin }: StripeConfig,
  { clock }: Node,
  { catalogue, store }: ProviderParts,
  onCustomerReplaced: PaymentTelemetry['customerReplaced'],
): Promise<Payments> {
  const customers = await stripeCustomers(store.db, key)
  const { createStripeProvider } = await import('../../internal/payments/stripe/provider.ts')
  const provider = createStripeProvider({
    key,
    webhookSecrets,
    returnUrl,
    catalogue,
    customers,
    onCustomerReplaced,
    clock,
    ...(origin !== undefined && { origin }),
  })
  return { provider, routes: [] }
}

async function startSweep(
  { lifecycle, clock }: Node,
  sweep: ProviderSweep,
  telemetry: PaymentTelemetry,
): Promise<void> {
  let isFirst = true
  await lifecycle.acquire(
    'sweep of the payment provider',
    () => {
      const rounds = new Rounds({
        clock,
        everyMs: ROUND_EVERY_MS,
        onProblem: telemetry.sweepFailed,
        async round(stopped) {
          // However young the last sweep is: what was told since, this node may have missed.
          const result = await sweep.run(isFirst ? 0 : undefined, stopped)
          if (result === undefined) return
          isFirst = false
          telemetry.swept(result)
        },
      })
      rounds.start()
      return rounds
    },
    (it) => it.stop(),
  )
}
