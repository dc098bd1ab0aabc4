import type { ApiKeyRecord } from '../../domain/model.ts'
import type { Principal } from '../../domain/principal.ts'
import { roles } from '../../domain/roles.ts'
import { body, identifier, name } from './fields.ts'
import { type Route, route } from './route.ts'

/** The use case of API keys that these rows call. */
export interface ApiKeysService {
  create(
    principal: Principal,
    input: { name: unknown; role?: unknown; projectIds?: unknown },
  ): Promise<Omit<ApiKeyRecord, 'customerId' | 'revokedAt' | 'lastUsedAt'> & { secret: string }>
  list(principal: Principal): Promise<ApiKeyRecord[]>
  revoke(principal: Principal, keyId: string): Promise<void>
}

const COLLECTION = '/v1/admin/api-keys'
const MAX_NAME = 100

interface Wanted {
  name: string
  role?: string
  projectIds?: string[]
}

/** docs/reference/api.md, "API keys". */
export function apiKeyRoutes(keys: ApiKeysService): Route[] {
  return [create(keys), list(keys), revoke(keys)]
}

function create(keys: ApiKeysService): Route {
  return route<unknown, unknown, Wanted>({
    method: 'POST',
    path: COLLECTION,
    operationId: 'createApiKey',
    summary: 'Create an API key; its secret is answered this once',
    action: 'writeApiKeys',
    body: body(
      'A key to create.',
      {
        name: name(MAX_NAME),
        role: { title: 'Role', type: 'string', description: "Default: the caller's own.", enum: roles },
        projectIds: {
          type: 'array',
          description: "Projects the key is limited to; default: the caller's own access.",
          items: identifier('A project of the account'),
          minItems: 1,
          maxItems: 1000,
        },
      },
      ['name'],
    ),
    answers: { status: 201, schema: 'CreatedApiKey' },
    errors: ['roleTooHigh', 'projectsTooBroad', 'apiKeyLimit'],
    handler: async (call) => ({ status: 201, body: await keys.create(call.principal, call.body) }),
  })
}

function list(keys: ApiKeysService): Route {
  return route({
    method: 'GET',
    path: COLLECTION,
    operationId: 'listApiKeys',
    summary: 'List API keys: the active ones, and the 100 that were revoked last',
    action: 'read',
    answers: { status: 200, schema: 'ApiKey', array: true },
    errors: [],
    handler: async (call) => ({ status: 200, body: await keys.list(call.principal) }),
  })
}

function revoke(keys: ApiKeysService): Route {
  return route<{ keyId: string }, unknown, unknown>({
    method: 'DELETE',
    path: `${COLLECTION}/{keyId}`,
    operationId: 'revokeApiKey',
    summary: 'Revoke an API key',
    action: 'writeApiKeys',
    onlyEnds: true,
    notFound: 'apiKeyNotFound',
    answers: { status: 204 },
    errors: ['apiKeyRoleHigher', 'apiKeyRevoked'],
    async handler(call) {
      await keys.revoke(call.principal, call.params.keyId)
      return { status: 204 }
    },
  })
}
