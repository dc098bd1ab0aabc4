import { Ajv } from 'ajv'
import { errors } from '../../domain/errors.ts'
import { isIdentifier } from '../../domain/identifiers.ts'
import { readJson } from '../../domain/json.ts'
import { accept, type Parsed, refuse } from '../../domain/parsed.ts'
import { describeFaults, faultsOf, joinProblems, named, shorten } from '../../domain/schema-fault.ts'
import type { Schema } from '../schemas/shape.ts'
import type { Route } from './route.ts'

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

const customerId: Schema = { type: 'string', description: 'The authenticated customer.', minLength: 1 }

/** One for all rows: each compiler checks schemas by a schema that it compiles first, which takes longer than a row. */
export function createCompiler(): Ajv {
  const ajv = new Ajv({
    strict: true,
    verbose: true,
    allErrors: true,
    useDefaults: true,
    ownProperties: true,
    formats: { uri: true },
  })
  ajv.addKeyword(STORABLE)
  ajv.addKeyword('example')
  return ajv
}

/** Compiles the validators of one row; throws when the row itself is malformed. */
export function compileShape(row: Route, ajv: Ajv): RequestShape {
  const properties = querySchemas(row)
  const requiredNames = requiredQuery(row)
  const validQuery = ajv.compile({ type: 'object', properties, required: requiredNames })
  const validBody = row.body && !row.bodyJudgedLater ? ajv.compile(row.body) : undefined
  return {
    query(querystring) {
      const { query, problems } = parseQuery(querystring, properties, requiredNames)
      if (!validQuery(query)) problems.push(...faultsOf(validQuery.errors))
      return problems.length === 0 ? accept(query) : refuse(joinProblems(problems))
    },
    body(bytes) {
      const parsed = parseBody(bytes, row.bodyOptional ?? false)
      if (!parsed.ok || !validBody || validBody(parsed.value)) return parsed
      return refuse(describeFaults(validBody.errors))
    },
  }
}

/** Schemas of a row's query parameters, with the `customerId` that every endpoint takes. */
export function querySchemas(row: Route): Readonly<Record<string, Schema>> {
  return { customerId, ...row.query }
}

/** Names of the query parameters that a row cannot do without. */
export function requiredQuery(row: Route): readonly string[] {
  return [...(row.customerId === 'required' ? ['customerId'] : []), ...(row.queryRequired ?? [])]
}

/** An unknown parameter is a problem, and so is one that is given twice. */
function parseQuery(
  querystring: string,
  schemas: Readonly<Record<string, Schema>>,
  requiredNames: readonly string[],
): { query: Record<string, unknown>; problems: string[] } {
  const query = new Map<string, unknown>()
  const seen = new Set<string>()
  const faults = new Map<string, string>()
  for (const [name, text] of new URLSearchParams(querystring)) {
    if (!Object.hasOwn(schemas, name)) faults.set(name, 'is not known')
    else if (seen.has(name)) faults.set(name, 'must be given once')
    seen.add(name)
    // An empty one is as good as none where there must be one; elsewhere its schema refuses it.
    if (faults.has(name) || (text === '' && requiredNames.includes(name))) continue
    query.set(name, typed(schemas[name]!, text))
  }
  const problems = [...faults].map(([name, fault]) => `Query parameter ${shorten(named(name))} ${fault}`)
  return { query: Object.fromEntries(query), problems }
}

/** Digits become a number where the schema says so; whatever else is left for the validator to refuse. */
function typed(schema: Schema, text: string): unknown {
  return schema.type === 'integer' && /^-?[0-9]{1,15}$/.test(text) ? Number(text) : text
}

function parseBody(bytes: Uint8Array, optional: boolean): Parsed<unknown> {
  if (bytes.length === 0 && optional) return accept({})
  const read = readJson(bytes)
  if (!read.ok) {
    return refuse(read.reason === 'depth' ? errors.bodyTooDeep.error : errors.bodyNotJson.error)
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
