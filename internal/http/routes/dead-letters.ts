import type { DlqItem } from '../../domain/model.ts'
import type { Principal } from '../../domain/principal.ts'
import { identifier, limit } from './fields.ts'
import { type Route, route } from './route.ts'

/** The use case of dead letters that these rows call. */
export interface DeadLettersService {
  /** Newest first; 404 for a `bufferId` that the principal cannot see. */
  list(principal: Principal, filter: { bufferId?: string; limit: number }): Promise<DlqItem[]>
  /** 403 foreign, 404 unknown. */
  read(principal: Principal, dlqId: string): Promise<DlqItem>
  /** The exact body that failed; 409 `payload_unavailable`. */
  batch(principal: Principal, dlqId: string): Promise<Uint8Array>
  remove(principal: Principal, dlqId: string): Promise<void>
}

const COLLECTION = '/v1/dlq'
const ONE = `${COLLECTION}/{dlqId}`

interface Named {
  dlqId: string
}

/** Specification, "Dead letter queue". */
export function deadLetterRoutes(deadLetters: DeadLettersService): Route[] {
  return [list(deadLetters), read(deadLetters), remove(deadLetters), batch(deadLetters)]
}

function list(deadLetters: DeadLettersService): Route {
  return route<unknown, { bufferId?: string; limit: number }, unknown>({
    method: 'GET',
    path: COLLECTION,
    summary: 'List dead letters',
    action: 'read',
    customerId: 'required',
    query: { bufferId: identifier('Only dead letters of this buffer'), limit: limit(100) },
    answers: { status: 200, schema: 'DlqItem', array: true },
    errors: [404],
    handler: async ({ principal, query }) => ({
      status: 200,
      body: await deadLetters.list(principal, {
        limit: query.limit,
        ...(query.bufferId !== undefined && { bufferId: query.bufferId }),
      }),
    }),
  })
}

function read(deadLetters: DeadLettersService): Route {
  return route<Named, unknown, unknown>({
    method: 'GET',
    path: ONE,
    summary: 'Read a dead letter',
    action: 'read',
    notFound: 'deadLetterNotFound',
    customerId: 'required',
    answers: { status: 200, schema: 'DlqItem' },
    errors: [404],
    handler: async (call) => ({
      status: 200,
      body: await deadLetters.read(call.principal, call.params.dlqId),
    }),
  })
}

function remove(deadLetters: DeadLettersService): Route {
  return route<Named, unknown, unknown>({
    method: 'DELETE',
    path: ONE,
    summary: 'Delete a dead letter with its batch',
    action: 'writeDeadLetters',
    notFound: 'deadLetterNotFound',
    customerId: 'required',
    answers: { status: 204 },
    errors: [404],
    async handler(call) {
      await deadLetters.remove(call.principal, call.params.dlqId)
      return { status: 204 }
    },
  })
}

function batch(deadLetters: DeadLettersService): Route {
  return route<Named, unknown, unknown>({
    method: 'GET',
    path: `${ONE}/batch`,
    summary: 'Read the stored batch: the exact body that failed',
    action: 'read',
    notFound: 'deadLetterNotFound',
    customerId: 'optional',
    answers: { status: 200, schema: 'DeliveryBatch' },
    errors: [404, 409],
    handler: async (call) => ({
      status: 200,
      body: await deadLetters.batch(call.principal, call.params.dlqId),
    }),
  })
}
