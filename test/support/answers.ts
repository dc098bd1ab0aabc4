/**
 * Holds every answer of the service that a test sees against the OpenAPI document: a status that the endpoint
 * documents, its content type, and a body of exactly its schema, with no member more (`judged.ts`). `watchAnswers` does so for whatever a test
 * fetches; callers that do not fetch call `takeDown` themselves.
 */
import { Ajv, type ValidateFunction } from 'ajv'
import { type ErrorEntry, errors } from '../../internal/domain/errors.ts'
import { documentedTable } from '../../internal/http/openapi/document.ts'
import { publicEndpoints } from '../../internal/http/openapi/public-endpoints.ts'
import { errorsOf } from '../../internal/http/routes/row-errors.ts'
import { judgedDocument } from './judged.ts'
import { record } from './traffic.ts'

export interface SeenAnswer {
  readonly method: string
  /** Of the request: absolute, or only path and query. */
  readonly url: string
  readonly status: number
  readonly contentType: string | null
  readonly text: string
}

export class UndocumentedAnswerError extends Error {
  override readonly name = 'UndocumentedAnswerError'
}

interface Documented {
  readonly operationId: string
  readonly method: string
  readonly path: string
  readonly pattern: RegExp
  /** Bodies by status and media type; a status without a body has none. */
  readonly answers: ReadonlyMap<number, ReadonlyMap<string, ValidateFunction>>
  readonly refusals: readonly ErrorEntry[]
}

interface DocumentedResponse {
  content?: Record<string, { schema: object }>
}

type Paths = Record<string, Record<string, { responses: Record<string, DocumentedResponse> }>>

const document = judgedDocument() as { paths: Paths }
const ajv = new Ajv({ strict: false, formats: { uri: isUri, 'date-time': isUtc } })
ajv.addSchema(document, 'openapi.json')
const refusalSchema = ajv.getSchema('openapi.json#/components/schemas/Error')!
const endpoints: readonly Documented[] = [
  ...publicEndpoints.map((row) => documented(row, row.errors)),
  ...documentedTable().map((row) => documented(row, errorsOf(row))),
]

function documented(
  { operationId, method, path }: { operationId: string; method: string; path: string },
  keys: readonly (keyof typeof errors)[],
): Documented {
  const { responses } = document.paths[path]![method.toLowerCase()]!
  const pointer = `openapi.json#/paths/${path.replaceAll('/', '~1')}/${method.toLowerCase()}/responses`
  const answers = Object.entries(responses).map(([status, { content = {} }]) => {
    const bodies = Object.keys(content).map((type): [string, ValidateFunction] => [
      type,
      ajv.getSchema(encodeURI(`${pointer}/${status}/content/${type.replace('/', '~1')}/schema`))!,
    ])
    return [Number(status), new Map(bodies)] as const
  })
  return {
    operationId,
    method,
    path,
    pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    answers: new Map(answers),
    refusals: keys.map((key) => errors[key]),
  }
}

/** What was found in this run: tests may swallow what they catch, and a whole run must have found nothing. */
export const undocumented: string[] = []

/** From now on `fetch` rejects for an answer that the document does not know. */
export function watchAnswers(): void {
  const original = globalThis.fetch
  globalThis.fetch = async (input, init) => {
    const response = await original(input, init)
    const url = input instanceof Request ? input.url : String(input)
    if (!isOfTheApi(url)) return response
    const method = init?.method ?? (input instanceof Request ? input.method : 'GET')
    const text = await response.clone().text()
    const contentType = response.headers.get('content-type')
    takeDown({ method, url, status: response.status, contentType, text })
    return response
  }
}

/** Checks an answer of the service and records it for the contract. Throws UndocumentedAnswerError. */
export function takeDown(seen: SeenAnswer): void {
  try {
    const operationId = checkAnswer(seen)
    if (operationId !== null) record(operationId, seen)
  } catch (error) {
    undocumented.push((error as Error).message)
    throw error
  }
}

function isOfTheApi(url: string): boolean {
  const { hostname, pathname } = new URL(url)
  return /^(127\.0\.0\.1|localhost|\[::1\])$/.test(hostname) && /^\/(v1\/|health$)/.test(pathname)
}

/** Throws, naming the field, when the answer is not as documented; else the endpoint, null for none or HEAD. */
export function checkAnswer(seen: SeenAnswer): string | null {
  const { pathname } = new URL(seen.url, 'http://service.test')
  const method = seen.method.toUpperCase()
  const here = endpoints.filter(({ pattern }) => pattern.test(pathname))
  const endpoint = here.find((each) => each.method === (method === 'HEAD' ? 'GET' : method))
  const problem = endpoint ? mismatch(endpoint, method, seen) : undescribed(here.length > 0, method, seen)
  if (problem !== null) {
    const body = seen.text.length > 500 ? `${seen.text.slice(0, 500)}…` : seen.text
    throw new UndocumentedAnswerError(`${method} ${seen.url} answered ${seen.status}: ${problem}\n${body}`)
  }
  return endpoint === undefined || method === 'HEAD' ? null : endpoint.operationId
}

function mismatch(endpoint: Documented, method: string, seen: SeenAnswer): string | null {
  const { status, contentType, text } = seen
  // Refused before any endpoint was asked.
  if (status === 417 || status === 431) return refusalProblem(seen)
  const bodies = endpoint.answers.get(status)
  if (bodies === undefined) return `${endpoint.operationId} does not document this status`
  if (method === 'HEAD') return text === '' ? null : 'HEAD has a body'
  if (bodies.size === 0) return text === '' ? null : 'there must be no body'
  const type = contentType?.split(';')[0] ?? ''
  const valid = bodies.get(type)
  if (valid === undefined) return `content type ${contentType} is none of ${[...bodies.keys()].join(', ')}`
  if (type !== 'application/json') return null
  const value = parsed(text)
  if (value === undefined) return 'the body is no JSON'
  if (!valid(value)) return faultOf(valid)
  return status < 400 || !('error' in (value as object)) ? null : unlisted(endpoint, status, value as object)
}

/** A refusal must be one of those that the endpoint lists: by its code, or as one without. */
function unlisted({ refusals, operationId }: Documented, status: number, body: object): string | null {
  const { code } = body as { code?: string }
  const known = refusals.some((entry) => entry.status === status && entry.code === code)
  return known ? null : `${operationId} does not list the code ${code} for this status`
}

/** No endpoint: a path that is none, a method that the path lacks, or a request that never became one. */
function undescribed(pathExists: boolean, method: string, seen: SeenAnswer): string | null {
  if (method === 'OPTIONS' && (seen.status === 200 || seen.status === 204)) return null
  const expected = [pathExists ? 405 : 404, 400, 405, 417, 431]
  if (!expected.includes(seen.status)) return `no endpoint: expected one of ${expected.join(', ')}`
  return method === 'HEAD' ? null : refusalProblem(seen)
}

function refusalProblem({ contentType, text }: SeenAnswer): string | null {
  if (!contentType?.startsWith('application/json')) return `content type ${contentType} is not JSON`
  return refusalSchema(parsed(text)) ? null : faultOf(refusalSchema)
}

function faultOf({ errors: faults }: ValidateFunction): string {
  const told = (faults ?? []).map(({ instancePath, message, params }) => {
    const { additionalProperty = '' } = params as { additionalProperty?: string }
    return `${instancePath.slice(1).replaceAll('/', '.') || 'body'} ${message} ${additionalProperty}`.trim()
  })
  return told.join('; ')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isUri(text: string): boolean {
  return URL.canParse(text)
}

function isUtc(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text) && !Number.isNaN(Date.parse(text))
}
