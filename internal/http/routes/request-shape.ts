import { Ajv } from 'ajv'
import { isIdentifier } from '../../domain/identifiers.ts'
import { maxDepth, readJson } from '../../domain/json.ts'
import { accept, type Parsed, refuse } from '../../domain/parsed.ts'
import { describeFault, shorten } from '../../domain/schema-fault.ts'
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

/** Refuses NUL and lone surrogates, which Postgres cannot store as text. */
const STORABLE = { keyword: 'storable', type: 'string', schemaType: 'boolean', validate: isStorable } as const

const customerId: Schema = { type: 'string', description: 'The authenticated customer.' }

/** Compiles the validators of one row; throws when the row itself is malformed. */
export function compileShape(row: Route): RequestShape {
  const ajv = new Ajv({
    strict: true,
    verbose: true,
    useDefaults: true,
    ownProperties: true,
    formats: { uri: true },
  })
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
      return validQuery(query.value) ? query : refuse(describeFault(validQuery.errors?.[0]))
    },
    body(bytes) {
      const parsed = parseBody(bytes, row.bodyOptional ?? false)
      if (!parsed.ok || !validBody || validBody(parsed.value)) return parsed
      return refuse(describeFault(validBody.errors?.[0]))
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
  const read = readJson(bytes)
  if (!read.ok) {
    const depth = read.reason === 'depth'
    return refuse(
      depth ? `Request body is nested deeper than ${maxDepth} levels` : 'Request body is not valid JSON',
    )
  }
  const { value } = read
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject ? accept(value) : refuse('Request body must be a JSON object')
}

function isStorable(wanted: boolean, text: string): boolean {
  return !wanted || (text.isWellFormed() && !text.includes('\u0000'))
}

/** Whether every path parameter can name something at all. */
export function areIdentifiers(params: Readonly<Record<string, string>>): boolean {
  return Object.values(params).every(isIdentifier)
}
