import type { DlqItem } from '../../domain/model.ts'
import type { Principal } from '../../domain/principal.ts'
import { body, identifier, limit } from './fields.ts'
import { type Route, route } from './route.ts'

/** The use case of dead letters that these rows call. */
export interface DeadLettersService {
  /** Newest first; 404 for a `bufferId` that the principal cannot see, 400 for a cursor that names no place. */
  list(principal: Principal, query: Wanted): Promise<DlqItem[]>
  /** 403 foreign, 404 unknown. */
  read(principal: Principal, dlqId: string): Promise<DlqItem>
  /** The exact body that failed; 409 `payload_unavailable`. */
  batch(principal: Principal, dlqId: string): Promise<Uint8Array>
  remove(principal: Principal, dlqId: string): Promise<void>
  /** The 200's body; refusals are 403, 404, 409 and 502 `delivery_failed`. */
  retry(principal: Principal, dlqId: string, body: { customerId?: string }): Promise<unknown>
}

const COLLECTION = '/v1/dlq'
const ONE = `${COLLECTION}/{dlqId}`

interface Named {
  dlqId: string
}

interface Wanted {
  bufferId?: string
  limit: number
  cursor?: string
}

/** docs/reference/api.md, "Dead letters". */
export function deadLetterRoutes(deadLetters: DeadLettersService): Route[] {
  return [list(deadLetters), read(deadLetters), remove(deadLetters), batch(deadLetters), retry(deadLetters)]
}

function list(deadLetters: DeadLettersService): Route {
  return route<unknown, Wanted, unknown>({
    method: 'GET',
    path: COLLECTION,
    operationId: 'listDeadLetters',
    summary: 'List dead letters',
    action: 'read',
    customerId: 'required',
    query: {
      bufferId: identifier('Only dead letters of this buffer'),
      limit: limit(100),
      cursor: {
        type: 'string',
        description:
          'Only dead letters behind this one: `createdAt` of the last entry of the page before, `_` and its `dlqId`.',
        minLength: 1,
        maxLength: 160,
      },
    },
    answers: { status: 200, schema: 'DlqItem', array: true },
    errors: ['bufferNotFound'],
    handler: async ({ principal, query: { bufferId, limit: most, cursor } }) => ({
      status: 200,
      body: await deadLetters.list(principal, {
        limit: most,
        ...(bufferId !== undefined && { bufferId }),
        ...(cursor !== undefined && { cursor }),
      }),
    }),
  })
}

function read(deadLetters: DeadLettersService): Route {
  return route<Named, unknown, unknown>({
    method: 'GET',
    path: ONE,
    operationId: 'readDeadLetter',
    summary: 'Read a dead letter',
    action: 'read',
    notFound: 'deadLetterNotFound',
    customerId: 'required',
    answers: { status: 200, schema: 'DlqItem' },
    errors: ['deadLetterForeign'],
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
    operationId: 'deleteDeadLetter',
    summary: 'Delete a dead letter with its batch',
    action: 'writeDeadLetters',
    notFound: 'deadLetterNotFound',
    customerId: 'required',
    answers: { status: 204 },
    errors: ['deadLetterForeign'],
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
    operationId: 'readDeadLetterBatch',
    summary: 'Read the stored batch: the exact body that failed',
    action: 'read',
    notFound: 'deadLetterNotFound',
    answers: { status: 200, schema: 'DeliveryBatch' },
    errors: ['deadLetterForeign', 'payloadUnavailable'],
    handler: async (call) => ({
      status: 200,
      body: await deadLetters.batch(call.principal, call.params.dlqId),
    }),
  })
}

function retry(deadLetters: DeadLettersService): Route {
  return route<Named, unknown, { customerId?: string }>({
    method: 'POST',
    path: `${ONE}/retry`,
    operationId: 'retryDeadLetter',
    summary: 'Deliver a dead letter once more, now, as its buffer is configured at present',
    action: 'writeDeadLetters',
    notFound: 'deadLetterNotFound',
    body: body('Whose dead letter it is.', {
      customerId: { type: 'string', description: 'The authenticated customer.' },
    }),
    bodyOptional: true,
    answers: { status: 200, schema: 'DlqRetry' },
    errors: [
      'deadLetterForeign',
      'bufferNotFound',
      'payloadUnavailable',
      'retryInProgress',
      'deliveryFailed',
      'secretUnreadable',
    ],
    handler: async (call) => ({
      status: 200,
      body: await deadLetters.retry(call.principal, call.params.dlqId, call.body),
    }),
  })
}
