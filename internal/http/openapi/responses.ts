import { type ErrorEntry, type ErrorKey, errors } from '../../domain/errors.ts'
import type { Answer } from '../routes/route.ts'
import type { SchemaName } from '../schemas/registry.ts'
import type { Schema } from '../schemas/shape.ts'
import { named } from '../schemas/shape.ts'
import { answerExamples, unavailableExample } from './examples/answers.ts'

/** Response objects of the OpenAPI document, by status. */

type Responses = Record<string, Schema>

/** A refusal that is no JSON. */
const PAGE = {
  schema: { type: 'string', description: 'A page.' },
  example: '<!DOCTYPE html><title>Bad Request</title>',
}

/** Refusals with a body of their own. */
const ownSchemas: Partial<Record<ErrorKey, SchemaName>> = {
  insufficientCredits: 'InsufficientCredits',
  deliveryFailed: 'DeliveryFailed',
}

export function responsesOf(answers: readonly Answer[], keys: readonly ErrorKey[]): Responses {
  const refusals = Map.groupBy(keys, (key) => errors[key].status)
  const all: [number, Schema][] = [
    ...answers.map((answer): [number, Schema] => [answer.status, responseOf(answer)]),
    ...[...refusals].map(([status, some]): [number, Schema] => [status, refusalOf(some)]),
  ]
  // Integer keys: the order of their statuses is the object's own.
  return Object.fromEntries(all)
}

function responseOf({ status, schema, array }: Answer): Schema {
  if (schema === undefined) return { description: 'Done; no body.' }
  const body = array ? { type: 'array', description: 'All of them.', items: named(schema) } : named(schema)
  const one = status === 503 ? unavailableExample : answerExamples[schema]
  const media = { schema: body, example: array ? [one] : one }
  return { description: descriptionOf(status), content: { 'application/json': media } }
}

function descriptionOf(status: number): string {
  const texts: Record<number, string> = { 200: 'OK.', 201: 'Created.', 202: 'Accepted.' }
  return texts[status] ?? 'Not usable now.'
}

/** All refusals of one status: what each says, and one example of each. */
function refusalOf(keys: readonly ErrorKey[]): Schema {
  const pages = keys.filter((key) => entryOf(key).html)
  const others = keys.filter((key) => !entryOf(key).html)
  return {
    description: keys.map(told).join(' '),
    ...headersOf(keys),
    content: {
      ...(others.length > 0 && { 'application/json': jsonOf(others) }),
      ...(pages.length > 0 && { 'text/html': PAGE }),
    },
  }
}

function told(key: ErrorKey): string {
  const { error, code } = entryOf(key)
  if (key === 'invalidRequest') return 'A parameter or member of the body is not valid; the text names each.'
  return code === undefined ? `${error}.` : `${error} (\`${code}\`).`
}

function headersOf(keys: readonly ErrorKey[]): { headers?: Schema } {
  const headers = {
    ...(keys.some((key) => entryOf(key).retryAfter !== undefined) && {
      'Retry-After': {
        description: 'Seconds to wait, where another try may help.',
        schema: { type: 'integer', minimum: 1 },
      },
    }),
    ...(keys.some((key) => entryOf(key).challenge !== undefined) && {
      'WWW-Authenticate': {
        description: 'How one may identify oneself instead of by `X-API-Key`.',
        schema: { type: 'string' },
      },
    }),
  }
  return Object.keys(headers).length > 0 ? { headers } : {}
}

function jsonOf(keys: readonly ErrorKey[]): Schema {
  const names = [...new Set(keys.map((key) => ownSchemas[key] ?? 'Error'))]
  const schemas = names.map((name) => named(name))
  return {
    schema: schemas.length === 1 ? schemas[0] : { anyOf: schemas },
    examples: Object.fromEntries(keys.map((key) => [key, { $ref: `#/components/examples/${key}` }])),
  }
}

/** What each refusal looks like, for `components.examples`. */
export function refusalExamples(keys: readonly ErrorKey[]): Schema {
  const bodies = keys.filter((key) => !entryOf(key).html)
  return Object.fromEntries(bodies.map((key) => [key, { value: exampleOf(key) }]))
}

function exampleOf(key: ErrorKey): unknown {
  const own = ownSchemas[key]
  if (own !== undefined) return answerExamples[own]
  const { error, code } = entryOf(key)
  return { error, ...(code !== undefined && { code }) }
}

function entryOf(key: ErrorKey): ErrorEntry {
  return errors[key]
}
