/** The audit: who did what is written beside the requests, and removed when it is old. */
import { randomUUID } from 'node:crypto'
import type { Meter } from '@opentelemetry/api'
import { createAuditSweep } from '../../internal/audit/sweep.ts'
import { type AuditTrail, createAuditTrail } from '../../internal/audit/trail.ts'
import { createAuditStore } from '../../internal/postgres/audit.ts'
import { isOutage } from '../../internal/postgres/outage.ts'
import { createAuditTelemetry } from '../../internal/telemetry/audit-telemetry.ts'
import type { Node, Store } from './foundation.ts'

/** Of a process that takes requests. It is stopped when no request can come any more. */
export function createTrail({ clock, log }: Node, { db, keys }: Store, meter: Meter): AuditTrail {
  return createAuditTrail({
    store: createAuditStore(db),
    clock,
    telemetry: createAuditTelemetry(log, meter),
    revokedKey: keys.revoked,
    newId: randomUUID,
    isOutage,
  })
}

export async function startAuditSweep({ lifecycle, clock, log, config }: Node, { db }: Store): Promise<void> {
  await lifecycle.acquire(
    'sweep of the audit',
    () => {
      const sweep = createAuditSweep({
        store: createAuditStore(db),
        days: config.auditDays,
        clock,
        onRemoved: (records) => log.info({ records }, 'audit records removed'),
        onProblem: (error) => log.warn({ error: String(error) }, 'the removal of audit records waits'),
      })
      sweep.start()
      return sweep
    },
    (it) => it.stop(),
  )
}
