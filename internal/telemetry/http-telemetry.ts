/** What the HTTP server reports: answers of 500, each with the error that nobody meant for the caller. */
import type { Meter } from '@opentelemetry/api'
import type { HttpTelemetry } from '../http/ports.ts'
import { counter } from './counter.ts'
import type { Logger } from './logger.ts'

export function createHttpTelemetry(log: Logger, meter: Meter): HttpTelemetry {
  const failed = counter(meter, 'penstock_http_failures', 'Requests answered 500')
  return {
    failed({ error, ...request }) {
      failed.add(1)
      log.error({ ...request, err: error }, 'request failed')
    },
  }
}
