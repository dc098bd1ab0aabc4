/** The rule of project-scoped credentials as SQL; `domain/principal.ts` says it for rows already read. */

import type { PendingQuery, Row } from 'postgres'
import type { Scope } from '../domain/principal.ts'
import type { Queryable } from './connection.ts'

/**
 * Condition on the columns `customer_id` and `project_id`. Two texts instead of one with `IS NULL OR`: the plan for
 * any values of such a one could not use the project, and would read all that the customer has.
 */
export function reachable(db: Queryable, scope: Scope): PendingQuery<Row[]> {
  const ofCustomer = db`customer_id = ${scope.customerId}`
  if (scope.projectIds === null) return ofCustomer
  return db`${ofCustomer} AND project_id = ANY (${[...scope.projectIds]}::text[])`
}
