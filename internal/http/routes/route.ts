import type { ErrorKey } from '../../domain/errors.ts'
import type { Principal } from '../../domain/principal.ts'
import type { Action } from '../../domain/roles.ts'
import type { SchemaName } from '../schemas/registry.ts'
import type { Schema } from '../schemas/shape.ts'

/**
 * The shape of one row of the route table. Everything that is known about an endpoint stands in its row:
 * the router, the validation of requests and the OpenAPI document are derived from it.
 */

/** A validated request. `P`, `Q`, `B`: path parameters, query and body, as their schemas promise. */
export interface Call<P = Record<string, string>, Q = Record<string, unknown>, B = unknown> {
  readonly principal: Principal
  readonly params: P
  readonly query: Q
  readonly body: B
  /** The body as it came; empty when there is none. */
  readonly raw: Uint8Array
  /** Aborted when the client ends or loses the connection before the answer. */
  readonly gone: () => AbortSignal
}

/** `body` is sent as JSON; bytes are JSON already and sent as they are; 204 has none. */
export interface Reply {
  readonly status: number
  readonly body?: unknown
}

/** One answer of an endpoint; `schema` names one of `schemas/registry.ts`, none: no body. */
export interface Answer {
  readonly status: number
  readonly schema?: SchemaName
  /** Whether the body is a list of it. */
  readonly array?: boolean
}

/** What is known about any endpoint, with credential or without. */
export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** In OpenAPI notation: `/v1/admin/projects/{projectId}`. */
  readonly path: string
  /** Name of the operation in the OpenAPI document, unique in the table. */
  readonly operationId: string
  readonly summary: string
  /** Schemas of query parameters by name; a parameter is text unless its type is integer. */
  readonly query?: Readonly<Record<string, Schema>>
  /** Those of `query` that must be given. */
  readonly queryRequired?: readonly string[]
  readonly body?: Schema
  /** The success answer. */
  readonly answers: Answer
  /** What its use case refuses with, besides what the rest of the row implies (`row-errors.ts`). */
  readonly errors: readonly ErrorKey[]
}

/** A management endpoint: it needs a credential. */
export interface Route extends Endpoint {
  /** Who may: the roles of this action (docs/reference/api.md, "Roles"). */
  readonly action: Action
  /** The 404 of the resource: also the answer to a `{parameter}` that can be no identifier. */
  readonly notFound?: ErrorKey
  /**
   * Whether the absence of the parameter `customerId` is a 400. Every endpoint takes it, and a foreign one is 403
   * (docs/architecture/protocol.md, "Admin requests").
   */
  readonly customerId?: 'required'
  /** The use case judges the body by itself (defaults, merge patches); the schema is for the documents. */
  readonly bodyJudgedLater?: boolean
  /** Whether a request without any body is accepted; the handler then sees `{}`. */
  readonly bodyOptional?: boolean
  /** It only ends a right or a duty of the account and destroys nothing, so a suspended account may do it. */
  readonly onlyEnds?: true
  /** Whom it waits for. Then it keeps no other request of its customer waiting. */
  readonly waitsFor?: 'destination' | 'payment-provider' | 'change'
  readonly handler: (call: never) => Promise<Reply>
}

/** Whether it changes nothing, here or elsewhere. A checkout is a GET and begins a purchase. */
export function isRead({ method, action }: Pick<Route, 'method' | 'action'>): boolean {
  return method === 'GET' && action !== 'checkout'
}

/** Whether a suspended account may do it: for every row by its own nature, so that no new one can forget it. */
export function passesSuspension(row: Pick<Route, 'method' | 'action' | 'onlyEnds'>): boolean {
  return isRead(row) || row.onlyEnds === true
}

/** Gives the handler its types and the table one uniform row type. */
export function route<P, Q, B>(
  row: Omit<Route, 'handler'> & { handler: (call: Call<P, Q, B>) => Promise<Reply> },
): Route {
  return row as unknown as Route
}
