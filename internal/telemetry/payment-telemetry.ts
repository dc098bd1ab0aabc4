/** What the payment provider tells: lines for what needs a look, and how far its changes were read. */
import type { Meter } from '@opentelemetry/api'
import type { ProviderEventReports } from '../billing/provider-events.ts'
import type { SweepResult } from '../billing/provider-sweep.ts'
import type { Clock } from '../runtime/clock.ts'
import { counter } from './counter.ts'
import type { Logger } from './logger.ts'

/** Lines about refused notifications in a minute; the metric counts all. */
const REFUSED_LINES = 10

export interface PaymentTelemetry extends ProviderEventReports {
  /** Somebody deleted an account's customer (`gone`) at the provider; another one took its place. */
  customerReplaced(event: { customerId: string; gone: string }): void
  /** A notification that is not the provider's. */
  refused(reason: string): void
  swept(result: SweepResult): void
  sweepFailed(error: unknown): void
}

/** `lagMs`: as `ProviderSweep`. */
export function createPaymentTelemetry(
  log: Logger,
  meter: Meter,
  clock: Clock,
  lagMs: () => number,
): PaymentTelemetry {
  meter
    .createObservableGauge('penstock_payment_sweep_lag_seconds', {
      description: 'Age of the last sweep that read all changes at the payment provider',
      unit: 's',
    })
    .addCallback((result) => {
      result.observe(lagMs() / 1_000)
    })
  const refused = counter(
    meter,
    'penstock_payment_notifications_refused_total',
    'Notifications that are not of the payment provider',
  )
  // Anybody may send them: they must not fill the log.
  let told = { minute: 0, lines: 0 }
  return {
    unusable: ({ reference, reason }) =>
      log.warn({ kind: reference.kind, id: reference.id, reason }, 'a payment object cannot be used yet'),
    stranger: ({ reference, customerId }) =>
      log.warn({ kind: reference.kind, id: reference.id, customerId }, 'a payment object is of a stranger'),
    secondSubscription({ refused, ...event }) {
      if (refused.length === 0) log.warn(event, 'a second subscription is ended and paid back')
      else log.error({ ...event, refused }, 'a second subscription is ended, and is not paid back')
    },
    customerReplaced: (event) => log.warn(event, 'a deleted customer of the payment provider is replaced'),
    refused(reason) {
      refused.add(1)
      const minute = Math.floor(clock.monotonic() / 60_000)
      if (minute !== told.minute) told = { minute, lines: 0 }
      if (told.lines++ < REFUSED_LINES) log.warn({ reason }, 'a payment notification is refused')
    },
    swept({ read, later }) {
      if (read > 0) log.info({ read, later }, 'the payment provider was swept')
    },
    sweepFailed: (error) => log.warn({ error: String(error) }, 'the sweep of the payment provider waits'),
  }
}
