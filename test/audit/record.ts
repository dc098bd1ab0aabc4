/** A record for tests that do not care what it says. */
import { randomUUID } from 'node:crypto'
import type { AuditRecord } from '../../internal/domain/audit.ts'

export function auditRecord(more: Partial<AuditRecord> = {}): AuditRecord {
  return {
    auditId: randomUUID(),
    customerId: 'acme',
    createdAt: 1_700_000_000_000,
    event: 'change',
    actor: { type: 'key', keyId: 'k1' },
    method: 'POST',
    route: '/v1/admin/projects',
    target: { projectId: 'shop' },
    from: { address: '192.0.2.7' },
    status: 201,
    count: 1,
    ...more,
  }
}
