import type { ErrorKey } from '../../domain/errors.ts'
import type { Principal } from '../../domain/principal.ts'
import type { Action } from '../../domain/roles.ts'

/**
 * The shape of one row of the route table. Everything that is known about an endpoint stands in its row:
 * the router, the validation of requests and the OpenAPI document are derived from it.
 */

/** A JSON Schema (draft 7 subset that OpenAPI 3.0.3 shares). */
export type Schema = Readonly<Record<string, unknown>>

/** A validated request. `P`, `Q`, `B`: path parameters, query and body, as their schemas promise. */
export interface Call<P = Record<string, string>, Q = Record<string, unknown>, B = unknown> {
  readonly principal: Principal
  readonly params: P
  readonly query: Q
  readonly body: B
}

/** `body` is sent as JSON; bytes are JSON already and sent as they are; 204 has none. */
export interface Reply {
  readonly status: number
  readonly body?: unknown
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** In OpenAPI notation: `/v1/admin/projects/{projectId}`. */
  readonly path: string
  readonly summary: string
  /** Who may: the roles of this action (specification, "Authentication"). */
  readonly action: Action
  /** The 404 of the resource: also the answer to a `{parameter}` that can be no identifier. */
  readonly notFound?: ErrorKey
  /** Schemas of query parameters by name; a parameter is text unless its type is integer. */
  readonly query?: Readonly<Record<string, Schema>>
  /**
   * The `customerId` parameter: `required` where the specification lists a 400 for its absence, else
   * `optional`; a foreign one is 403 (design, section 9).
   */
  readonly customerId?: 'required' | 'optional'
  readonly body?: Schema
  /** The use case judges the body by itself (defaults, merge patches); the schema is for the documents. */
  readonly bodyJudgedLater?: boolean
  /** Whether a request without any body is accepted; the handler then sees `{}`. */
  readonly bodyOptional?: boolean
  /** Name of the resource in the success answer, for the OpenAPI document. */
  readonly answers: { readonly status: number; readonly schema?: string; readonly array?: boolean }
  /** Documented error statuses besides 400 (shape), 401, 403 (role) and 500. */
  readonly errors: readonly number[]
  readonly handler: (call: never) => Promise<Reply>
}

/** Gives the handler its types and the table one uniform row type. */
export function route<P, Q, B>(
  row: Omit<Route, 'handler'> & { handler: (call: Call<P, Q, B>) => Promise<Reply> },
): Route {
  return row as unknown as Route
}
