import { redactBuffer } from '../../domain/buffer-secrets.ts'
import { memberBytes } from '../../domain/json-member.ts'
import type { Buffer } from '../../domain/model.ts'
import type { Principal } from '../../domain/principal.ts'
import { seesSecrets } from '../../domain/roles.ts'
import { bufferInputSchema, bufferMergePatchSchema } from '../schemas/buffers.ts'
import { body, identifier, name } from './fields.ts'
import { type Route, route } from './route.ts'

/** The use case of buffers that these rows call. Answers hold secrets as stored. */
export interface BuffersService {
  create(principal: Principal, body: unknown): Promise<Buffer>
  list(principal: Principal, filter?: { projectId?: string }): Promise<Buffer[]>
  read(principal: Principal, bufferId: string): Promise<Buffer>
  update(principal: Principal, bufferId: string, patch: unknown): Promise<Buffer>
  remove(principal: Principal, bufferId: string): Promise<void>
  /** `body`: optional `{name}`. 400 when it cannot be cloned. */
  clone(principal: Principal, bufferId: string, body: unknown): Promise<Buffer>
  /** The outcome of one delivery of `payload`, failed or not. */
  /** `payload`: the caller's own bytes, a JSON object. */
  test(principal: Principal, bufferId: string, payload: Uint8Array): Promise<unknown>
}

const COLLECTION = '/v1/admin/buffers'
const ONE = `${COLLECTION}/{bufferId}`

interface Named {
  bufferId: string
}

/** docs/reference/api.md, "Buffers". */
export function bufferRoutes(buffers: BuffersService): Route[] {
  return [
    create(buffers),
    list(buffers),
    read(buffers),
    update(buffers),
    remove(buffers),
    clone(buffers),
    test(buffers),
  ]
}

/** A viewer sees no secret (docs/architecture/protocol.md, "Admin requests"). */
function shownTo(principal: Principal, buffer: Buffer): Buffer {
  return seesSecrets(principal.role) ? buffer : redactBuffer(buffer)
}

function create(buffers: BuffersService): Route {
  return route({
    method: 'POST',
    path: COLLECTION,
    operationId: 'createBuffer',
    summary: 'Create a buffer',
    action: 'writeBuffers',
    body: bufferInputSchema,
    bodyJudgedLater: true,
    answers: { status: 201, schema: 'Buffer' },
    errors: ['projectUnknown', 'bufferExists', 'bufferLimit', 'idLimit'],
    handler: async (call) => ({ status: 201, body: await buffers.create(call.principal, call.body) }),
  })
}

function list(buffers: BuffersService): Route {
  return route<unknown, { projectId?: string }, unknown>({
    method: 'GET',
    path: COLLECTION,
    operationId: 'listBuffers',
    summary: 'List buffers',
    action: 'read',
    customerId: 'required',
    query: { projectId: identifier('Only buffers of this project') },
    answers: { status: 200, schema: 'Buffer', array: true },
    errors: [],
    async handler({ principal, query: { projectId } }) {
      const found = await buffers.list(principal, projectId === undefined ? {} : { projectId })
      return { status: 200, body: found.map((buffer) => shownTo(principal, buffer)) }
    },
  })
}

function read(buffers: BuffersService): Route {
  return route<Named, unknown, unknown>({
    method: 'GET',
    path: ONE,
    operationId: 'readBuffer',
    summary: 'Read a buffer',
    action: 'read',
    notFound: 'bufferNotFound',
    answers: { status: 200, schema: 'Buffer' },
    errors: [],
    handler: async ({ principal, params }) => ({
      status: 200,
      body: shownTo(principal, await buffers.read(principal, params.bufferId)),
    }),
  })
}

function update(buffers: BuffersService): Route {
  return route<Named, unknown, unknown>({
    method: 'PATCH',
    path: ONE,
    operationId: 'updateBuffer',
    summary: 'Change a buffer (JSON merge patch)',
    action: 'writeBuffers',
    notFound: 'bufferNotFound',
    body: bufferMergePatchSchema,
    bodyJudgedLater: true,
    answers: { status: 200, schema: 'Buffer' },
    errors: [],
    handler: async (call) => ({
      status: 200,
      body: await buffers.update(call.principal, call.params.bufferId, call.body),
    }),
  })
}

function remove(buffers: BuffersService): Route {
  return route<Named, unknown, unknown>({
    method: 'DELETE',
    path: ONE,
    operationId: 'deleteBuffer',
    summary: 'Delete a buffer',
    action: 'writeBuffers',
    notFound: 'bufferNotFound',
    answers: { status: 204 },
    errors: [],
    async handler(call) {
      await buffers.remove(call.principal, call.params.bufferId)
      return { status: 204 }
    },
  })
}

function clone(buffers: BuffersService): Route {
  return route<Named, unknown, unknown>({
    method: 'POST',
    path: `${ONE}/clone`,
    operationId: 'cloneBuffer',
    summary: 'Copy the configuration of a buffer into a new one',
    action: 'writeBuffers',
    notFound: 'bufferNotFound',
    body: body('How the new buffer differs; its name is otherwise the original one and " (Copy)".', {
      name: name(),
    }),
    bodyOptional: true,
    bodyJudgedLater: true,
    answers: { status: 201, schema: 'Buffer' },
    errors: ['cloneFailed', 'secretUnreadable', 'bufferLimit', 'idLimit'],
    handler: async (call) => ({
      status: 201,
      body: await buffers.clone(call.principal, call.params.bufferId, call.body),
    }),
  })
}

function test(buffers: BuffersService): Route {
  return route<Named, unknown, { payload: object }>({
    method: 'POST',
    path: `${ONE}/test`,
    operationId: 'testBuffer',
    summary: 'Deliver one event to the destination of a buffer, now',
    action: 'writeBuffers',
    notFound: 'bufferNotFound',
    body: body(
      'What to deliver.',
      {
        payload: {
          title: 'TestPayload',
          type: 'object',
          description: 'Payload of the event: any JSON object.',
        },
      },
      ['payload'],
    ),
    answers: { status: 200, schema: 'BufferTest' },
    waitsFor: 'destination',
    errors: ['secretUnreadable', 'testRate'],
    handler: async (call) => ({
      status: 200,
      // As it came: ingest passes payloads on byte for byte, so does its trial.
      body: await buffers.test(call.principal, call.params.bufferId, memberBytes(call.raw, 'payload')!),
    }),
  })
}
