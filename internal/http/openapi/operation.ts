import { rolesFor } from '../../domain/roles.ts'
import { querySchemas, requiredQuery } from '../routes/request-shape.ts'
import type { Endpoint, Route } from '../routes/route.ts'
import { errorsOf } from '../routes/row-errors.ts'
import type { Schema } from '../schemas/shape.ts'
import { named } from '../schemas/shape.ts'
import { deliveryCallback } from './delivery.ts'
import { requestExample } from './examples/requests.ts'
import { requestNameOf } from './names.ts'
import type { PublicEndpoint } from './public-endpoints.ts'
import { responsesOf } from './responses.ts'
import { tagOf } from './tags.ts'

/** Operation objects of the OpenAPI document. */

/** A management endpoint: by key or ID token, for the roles of its action. */
export function managementOperation(row: Route): Schema {
  const allowed = `For the roles ${rolesFor[row.action].join(', ')}.`
  return {
    ...headOf(row, allowed),
    security: [{ apiKey: [] }, { idToken: [] }],
    ...parametersOf([...pathParameters(row), ...queryParameters(row)]),
    ...bodyOf(row, !row.bodyOptional),
    responses: responsesOf([row.answers], errorsOf(row)),
    ...callbacksOf(row),
  }
}

export function publicOperation(row: PublicEndpoint): Schema {
  return {
    ...headOf(row, row.description),
    security: row.optionalKey ? [{}, { apiKey: [] }] : [],
    ...parametersOf([...pathParameters(row), ...headerParameters(row)]),
    ...bodyOf(row, true),
    responses: responsesOf([row.answers, ...(row.otherAnswers ?? [])], row.errors),
  }
}

function headOf(row: Endpoint, description: string): Schema {
  const { operationId, summary } = row
  return { operationId, summary, description, tags: [tagOf(row.path)] }
}

function parametersOf(parameters: readonly Schema[]): { parameters?: readonly Schema[] } {
  return parameters.length === 0 ? {} : { parameters }
}

/** What can be no identifier is no parameter of this path: 404. */
function pathParameters({ path }: Endpoint): Schema[] {
  const names = path.matchAll(/\{(\w+)\}/g)
  return [...names].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    description: `The ${name.replace(/Id$/, '')}.`,
    schema: { type: 'string', minLength: 1, maxLength: 128 },
  }))
}

function queryParameters(row: Route): Schema[] {
  const required = requiredQuery(row)
  return Object.entries(querySchemas(row)).map(([name, schema]) => {
    const { description, ...rest } = schema
    return { name, in: 'query', required: required.includes(name), description, schema: rest }
  })
}

function headerParameters(row: PublicEndpoint): Schema[] {
  return Object.entries(row.headers ?? {}).map(([name, schema]) => {
    const { description, ...rest } = schema
    return { name, in: 'header', required: false, description, schema: rest }
  })
}

function bodyOf(row: Endpoint, required: boolean): { requestBody?: Schema } {
  if (row.body === undefined) return {}
  const media = { schema: named(requestNameOf(row)), example: requestExample(row.operationId) }
  return { requestBody: { required, content: { 'application/json': media } } }
}

/** Generators want it in one place, written out: where the destination is named first. */
function callbacksOf({ operationId }: Endpoint): { callbacks?: Schema } {
  return operationId === 'createBuffer' ? { callbacks: { delivery: deliveryCallback } } : {}
}
