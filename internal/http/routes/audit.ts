import type { Principal } from '../../domain/principal.ts'
import { limit } from './fields.ts'
import { type Route, route } from './route.ts'

interface Wanted {
  since?: number
  until?: number
  cursor?: string
  limit: number
}

/** The use case of the audit that this row calls. */
export interface AuditService {
  /** `{records, nextCursor}`, newest first; 400 for a cursor of nobody, 403 for a key that is limited to projects. */
  list(principal: Principal, query: Wanted): Promise<unknown>
}

const MAX_RECORDS = 100
/** Digits of a number that a query may have. */
const LAST_MOMENT = 999_999_999_999_999

function moment(description: string) {
  return { type: 'integer', description, minimum: 0, maximum: LAST_MOMENT }
}

/** docs/reference/api.md, "Audit". */
export function auditRoutes(audit: AuditService): Route[] {
  return [
    route<unknown, Wanted, unknown>({
      method: 'GET',
      path: '/v1/admin/audit',
      operationId: 'listAuditRecords',
      summary: 'Read who did what, newest first',
      action: 'readAudit',
      query: {
        since: moment('Only records of this moment or later, Unix epoch milliseconds.'),
        until: moment('Only records before this moment, Unix epoch milliseconds.'),
        cursor: {
          type: 'string',
          description: '`nextCursor` of the page before: the answer goes on behind it.',
          minLength: 1,
          maxLength: 64,
        },
        limit: limit(50, MAX_RECORDS),
      },
      answers: { status: 200, schema: 'AuditPage' },
      errors: ['projectForeign'],
      handler: async ({ principal, query }) => ({ status: 200, body: await audit.list(principal, query) }),
    }),
  ]
}
