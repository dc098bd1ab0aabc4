/** The rule of project-scoped credentials as SQL; `domain/principal.ts` says it for rows already read. */

import type { PendingQuery, Row } from 'postgres'
import type { Scope } from '../domain/principal.ts'
import type { Queryable } from './connection.ts'

/** Condition on the columns `customer_id` and `project_id`. */
export function reachable(db: Queryable, scope: Scope): PendingQuery<Row[]> {
  const projectIds = scope.projectIds === null ? null : [...scope.projectIds]
  return db`customer_id = ${scope.customerId}
    AND (${projectIds}::text[] IS NULL OR project_id = ANY (${projectIds}::text[]))`
}
