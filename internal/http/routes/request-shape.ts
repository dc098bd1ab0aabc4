import { Ajv, type ErrorObject } from 'ajv'
import { isIdentifier } from '../../domain/identifiers.ts'
import { accept, type Parsed, refuse } from '../../domain/parsed.ts'
import type { Route, Schema } from './route.ts'

/**
 * Validation of requests, derived from the route table. Errors name the field or parameter. Nothing is
 * converted silently: a number in a query is digits only, a body member has its type or is refused.
 */

export interface RequestShape {
  /** The query as its schemas promise, `customerId` included; a parameter given twice is an error. */
  query(querystring: string): Parsed<Record<string, unknown>>
  /** `bytes`: the raw body. */
  body(bytes: Uint8Array): Parsed<unknown>
}

/** Members of admin bodies nest less; bounds what validators and merges walk down. */
const MAX_DEPTH = 64

/** Refuses NUL and lone surrogates, which Postgres cannot store as text. */
const STORABLE = { keyword: 'storable', type: 'string', schemaType: 'boolean', validate: isStorable } as const

const customerId: Schema = { type: 'string', description: 'The authenticated customer.' }

/** Compiles the validators of one row; throws when the row itself is malformed. */
export function compileShape(row: Route): RequestShape {
  const ajv = new Ajv({ strict: true, useDefaults: true, ownProperties: true, formats: { uri: true } })
  ajv.addKeyword(STORABLE)
  ajv.addKeyword('example')
  const properties = querySchemas(row)
  const validQuery = ajv.compile({
    type: 'object',
    properties,
    required: row.customerId === 'required' ? ['customerId'] : [],
  })
  const validBody = row.body && !row.bodyJudgedLater ? ajv.compile(row.body) : undefined
  return {
    query(querystring) {
      const query = parseQuery(querystring, properties)
      if (!query.ok) return query
      return validQuery(query.value) ? query : refuse(describe(validQuery.errors?.[0]))
    },
    body(bytes) {
      const parsed = parseBody(bytes, row.bodyOptional ?? false)
      if (!parsed.ok || !validBody || validBody(parsed.value)) return parsed
      return refuse(describe(validBody.errors?.[0]))
    },
  }
}

/** Schemas of a row's query parameters, with the `customerId` that its rule adds. */
export function querySchemas(row: Route): Readonly<Record<string, Schema>> {
  return row.customerId ? { customerId, ...row.query } : (row.query ?? {})
}

/** Unknown parameters are passed over; an empty one counts as missing. */
function parseQuery(
  querystring: string,
  schemas: Readonly<Record<string, Schema>>,
): Parsed<Record<string, unknown>> {
  const query = new Map<string, unknown>()
  for (const [name, text] of new URLSearchParams(querystring)) {
    if (query.has(name)) return refuse(`Query parameter ${shorten(name)} must be given once`)
    query.set(name, text)
  }
  const known = [...query].filter(([name, text]) => Object.hasOwn(schemas, name) && text !== '')
  return accept(Object.fromEntries(known.map(([name, text]) => [name, typed(schemas[name]!, String(text))])))
}

/** Digits become a number where the schema says so; whatever else is left for the validator to refuse. */
function typed(schema: Schema, text: string): unknown {
  return schema.type === 'integer' && /^-?[0-9]{1,15}$/.test(text) ? Number(text) : text
}

function parseBody(bytes: Uint8Array, optional: boolean): Parsed<unknown> {
  if (bytes.length === 0 && optional) return accept({})
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    return refuse('Request body is not valid JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuse('Request body must be a JSON object')
  }
  return isDeep(value) ? refuse(`Request body is nested deeper than ${MAX_DEPTH} levels`) : accept(value)
}

/** Level by level, so that a million levels cost no stack. */
function isDeep(root: object): boolean {
  let level: object[] = [root]
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return true
    level = level.flatMap((node) => Object.values(node).filter((it) => typeof it === 'object' && it !== null))
  }
  return false
}

function isStorable(wanted: boolean, text: string): boolean {
  return !wanted || (text.isWellFormed() && !text.includes('\u0000'))
}

function describe(error: ErrorObject | undefined): string {
  if (!error) throw new Error('validation failed without an error')
  const path = error.instancePath.slice(1).replaceAll('/', '.')
  const field = (name?: string): string =>
    shorten([path, name].filter((part) => part !== undefined && part !== '').join('.') || 'body')
  switch (error.keyword) {
    case 'required':
      return `${field(error.params.missingProperty)} is required`
    case 'additionalProperties':
      return `${field(error.params.additionalProperty)} is not a known field`
    case 'enum':
      return `${field()} must be one of: ${error.params.allowedValues.join(', ')}`
    case 'pattern':
    case 'storable':
      return `${field()} has a character that is not allowed`
    default:
      return `${field()} ${error.message}`
  }
}

function shorten(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 200)}…`
}

/** Whether every path parameter can name something at all. */
export function areIdentifiers(params: Readonly<Record<string, string>>): boolean {
  return Object.values(params).every(isIdentifier)
}
