/** What the HTTP server reports: answers of 500, each with the error that nobody meant for the caller, refusals and limits. */
import type { Meter } from '@opentelemetry/api'
import type { HttpTelemetry, RateLimit } from '../http/ports.ts'
import { counter } from './counter.ts'
import type { Logger } from './logger.ts'

export const RATE_LIMITS: readonly RateLimit[] = ['key', 'customer', 'test', 'payment-provider', 'sign-up']

export function createHttpTelemetry(log: Logger, meter: Meter): HttpTelemetry {
  const failed = counter(meter, 'penstock_http_failures', 'Requests answered 500')
  const limited = counter(
    meter,
    'penstock_requests_limited',
    'Management requests answered 429 for their number',
    'limit',
  )
  // Shown from the start: a series that is not there yet raises no alert.
  for (const limit of RATE_LIMITS) limited.add(0, limit)
  const refused = counter(
    meter,
    'penstock_http_refused',
    'Refusals besides those that ingest counts',
    'status',
  )
  return {
    limited(limit) {
      limited.add(1, limit)
    },
    failed({ error, ...request }) {
      failed.add(1)
      log.error({ ...request, err: error }, 'request failed')
    },
    refused(status) {
      refused.add(1, String(status))
    },
  }
}
