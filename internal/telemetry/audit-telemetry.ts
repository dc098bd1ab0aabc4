/** What the audit reports of itself: records that were written or lost, and every failed authentication. */
import type { Meter } from '@opentelemetry/api'
import type { AuditTelemetry } from '../audit/ports.ts'
import { counter, labelledCounter } from './counter.ts'
import type { Logger } from './logger.ts'

export function createAuditTelemetry(log: Logger, meter: Meter): AuditTelemetry {
  const failures = labelledCounter(
    meter,
    'penstock_authentication_failures',
    'Credentials that were refused, or missing',
    ['place', 'credential'],
  )
  const written = counter(meter, 'penstock_audit_records', 'Audit records written')
  const lost = counter(meter, 'penstock_audit_lost', 'Audit records that will not be written', 'reason')
  return {
    authenticationFailed(place, credential) {
      failures.add(1, [place, credential])
    },
    written(records) {
      written.add(records)
    },
    lost(reason, records) {
      lost.add(records, reason)
    },
    leftOut(records) {
      log.warn({ records }, 'audit records were left out')
    },
    waits(error) {
      log.warn({ error: String(error) }, 'audit records wait')
    },
  }
}
