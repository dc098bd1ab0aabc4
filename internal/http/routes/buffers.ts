import { bufferConfigSchema, bufferCreateSchema } from '../../domain/buffer-schema.ts'
import { redactBuffer } from '../../domain/buffer-secrets.ts'
import type { Buffer } from '../../domain/model.ts'
import type { Principal } from '../../domain/principal.ts'
import { seesSecrets } from '../../domain/roles.ts'
import { identifier } from './fields.ts'
import { type Route, route, type Schema } from './route.ts'

/** The use case of buffers that these rows call. Answers hold secrets as stored. */
export interface BuffersService {
  create(principal: Principal, body: unknown): Promise<Buffer>
  list(principal: Principal, filter?: { projectId?: string }): Promise<Buffer[]>
  read(principal: Principal, bufferId: string): Promise<Buffer>
  update(principal: Principal, bufferId: string, patch: unknown): Promise<Buffer>
  remove(principal: Principal, bufferId: string): Promise<void>
}

const COLLECTION = '/v1/admin/buffers'
const ONE = `${COLLECTION}/{bufferId}`

interface Named {
  bufferId: string
}

/** Specification, "Buffers". */
export function bufferRoutes(buffers: BuffersService): Route[] {
  return [create(buffers), list(buffers), read(buffers), update(buffers), remove(buffers)]
}

/** A viewer sees no secret (design, section 9). */
function shownTo(principal: Principal, buffer: Buffer): Buffer {
  return seesSecrets(principal.role) ? buffer : redactBuffer(buffer)
}

function create(buffers: BuffersService): Route {
  return route({
    method: 'POST',
    path: COLLECTION,
    summary: 'Create a buffer',
    action: 'writeBuffers',
    body: bufferCreateSchema as unknown as Schema,
    bodyJudgedLater: true,
    answers: { status: 201, schema: 'Buffer' },
    errors: [409],
    handler: async (call) => ({ status: 201, body: await buffers.create(call.principal, call.body) }),
  })
}

function list(buffers: BuffersService): Route {
  return route<unknown, { projectId?: string }, unknown>({
    method: 'GET',
    path: COLLECTION,
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
    summary: 'Read a buffer',
    action: 'read',
    notFound: 'bufferNotFound',
    customerId: 'optional',
    answers: { status: 200, schema: 'Buffer' },
    errors: [404],
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
    summary: 'Change a buffer (JSON merge patch)',
    action: 'writeBuffers',
    notFound: 'bufferNotFound',
    body: bufferConfigSchema as unknown as Schema,
    bodyJudgedLater: true,
    answers: { status: 200, schema: 'Buffer' },
    errors: [404],
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
    summary: 'Delete a buffer',
    action: 'writeBuffers',
    notFound: 'bufferNotFound',
    answers: { status: 204 },
    errors: [404],
    async handler(call) {
      await buffers.remove(call.principal, call.params.bufferId)
      return { status: 204 }
    },
  })
}
