/** What a command did to a customer, as the audit keeps it. */
import type { AuditRecord, AuditTarget } from '../domain/audit.ts'

export interface CommandRun {
  /** A new UUID. */
  readonly auditId: string
  /** Unix ms. */
  readonly createdAt: number
  readonly customerId: string
  /** As it is typed, without ids and values: `npm run account`. */
  readonly command: string
  /** Ids alone. */
  readonly target?: AuditTarget
}

/** Nobody is asked who runs a command: whoever can reach the database may write anything into it. */
export function commandRecord({
  auditId,
  createdAt,
  customerId,
  command,
  target = {},
}: CommandRun): AuditRecord {
  return {
    auditId,
    customerId,
    createdAt,
    event: 'change',
    actor: { type: 'command' },
    method: null,
    route: command,
    target,
    from: {},
    status: null,
    count: 1,
  }
}
