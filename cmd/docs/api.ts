/** The parts of docs/reference/api.md that the code knows: endpoints by the route table, roles, refusals. */
import type { ErrorKey } from '../../internal/domain/errors.ts'
import { type Action, roles, rolesFor } from '../../internal/domain/roles.ts'
import { documentedTable } from '../../internal/http/openapi/document.ts'
import { type PublicEndpoint, publicEndpoints } from '../../internal/http/openapi/public-endpoints.ts'
import { querySchemas, requiredQuery } from '../../internal/http/routes/request-shape.ts'
import type { Answer, Endpoint, Route } from '../../internal/http/routes/route.ts'
import { errorsOf, errorsOfAll, errorsOfBodies } from '../../internal/http/routes/row-errors.ts'
import { responseSchemas, type SchemaName } from '../../internal/http/schemas/registry.ts'
import type { Schema } from '../../internal/http/schemas/shape.ts'
import { refusalTable } from './errors.ts'
import { type SchemaRow, schemaRows } from './schema-rows.ts'
import { code, table, wrapped } from './table.ts'

/** Headings of the page that have endpoints, by how their paths begin. The longest beginning counts. */
const SECTIONS = {
  ingest: ['/v1/ingest/'],
  customers: ['/v1/admin/customers', '/v1/admin/whoami'],
  projects: ['/v1/admin/projects'],
  buffers: ['/v1/admin/buffers', '/v1/admin/buffer-states'],
  'dead letters': ['/v1/dlq'],
  analytics: ['/v1/analytics/'],
  'api keys': ['/v1/admin/api-keys'],
  audit: ['/v1/admin/audit'],
  credits: ['/v1/admin/credits'],
  'credit packs': ['/v1/admin/credit-packs'],
  plans: ['/v1/admin/plans', '/v1/admin/subscription/checkout-url'],
  subscriptions: ['/v1/admin/subscription'],
  invoices: ['/v1/admin/invoices'],
  notifications: ['/v1/payments/'],
  health: ['/health', '/'],
} as const satisfies Record<string, readonly string[]>

export type ApiSection = keyof typeof SECTIONS

export const apiSections = Object.keys(SECTIONS) as ApiSection[]

/** Bodies that have a page or a section of their own. */
const OWN_PAGES: Partial<Record<SchemaName, string>> = {
  AnalyticsSummary: 'analytics.md#summary',
  AnalyticsTimeseries: 'analytics.md#timeseries',
  Buffer: 'buffers.md#fields',
  DeliveryBatch: 'buffers.md#deliveries',
}

/** What path parameters name. */
const NAMED: Readonly<Record<string, string>> = {
  customerId: 'customer',
  projectId: 'project',
  bufferId: 'buffer',
  dlqId: 'dead letter',
  keyId: 'API key',
  packId: 'credit pack',
  invoiceId: 'invoice',
  provider: 'payment provider',
}

const ACTIONS: Record<Action, string> = {
  read: 'Read everything that the credential reaches',
  writeBuffers: 'Create, change, delete, clone and test buffers; see their secrets',
  writeProjects: 'Create, change and delete projects',
  writeApiKeys: 'Create and revoke API keys',
  readAudit: 'Read the audit',
  writeDeadLetters: 'Retry and delete dead letters',
  addCredits: 'Grant credits on the local instance',
  checkout: 'Fetch checkout URLs of plans and credit packs',
  cancelImmediately: 'Cancel the subscription immediately',
  cancelAtPeriodEnd: 'Cancel the subscription at the end of its period',
  createCustomers: 'Create customers',
}

/** Every documented endpoint, in the order of the table. */
function endpoints(): readonly (Route | PublicEndpoint)[] {
  return [...publicEndpoints, ...documentedTable()]
}

/** All endpoints of a section of the page, with the bodies that they answer. */
export function endpointsOf(section: ApiSection): string {
  const rows = endpoints().filter(({ path }) => sectionOf(path) === section)
  if (rows.length === 0) throw new Error(`no endpoint belongs to ${section}`)
  const names = new Set(rows.flatMap((row) => answersOf(row).flatMap(({ schema }) => schema ?? [])))
  const bodies = [...names].filter((name) => OWN_PAGES[name] === undefined)
  return [...rows.map(endpointText), ...bodies.map(bodyText)].join('\n\n')
}

/** Throws for a path that no section of the page has. */
function sectionOf(path: string): ApiSection {
  const [found] = apiSections
    .flatMap((section) => SECTIONS[section].map((start: string) => ({ section, start })))
    .filter(({ start }) => path.startsWith(start))
    .sort((a, b) => b.start.length - a.start.length)
  if (found === undefined) throw new Error(`${path} has no section in docs/reference/api.md`)
  return found.section
}

function endpointText(row: Route | PublicEndpoint): string {
  const parts = [`### \`${row.method} ${row.path}\``, saying(row)]
  const parameters = parametersOf(row)
  if (parameters.length > 0) parts.push(table(['parameter', 'in', 'type', 'meaning'], parameters))
  const own = ownErrorsOf(row)
  const only = own.length === 0 ? ' It is refused only with the common errors.' : ''
  parts.push(wrapped(`Answers ${answersOf(row).map(answerText).join('; ')}.${only}`))
  if (own.length > 0) parts.push(refusalTable(own))
  return parts.join('\n\n')
}

/** The description of a public endpoint says more than this page repeats: its prose does. */
function saying(row: Route | PublicEndpoint): string {
  return `${row.summary}. ${isRoute(row) ? allowed(row.action) : 'No credential is needed.'}`
}

function allowed(action: Action): string {
  const some = rolesFor[action]
  return some.length === roles.length ? 'For every role.' : `For the roles ${some.join(', ')}.`
}

function isRoute(row: Route | PublicEndpoint): row is Route {
  return 'action' in row
}

function parametersOf(row: Route | PublicEndpoint): string[][] {
  return [
    ...pathParameters(row),
    ...(isRoute(row) ? queryParameters(row) : headerParameters(row)),
    ...bodyParameters(row),
  ]
}

function pathParameters({ path }: Endpoint): string[][] {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
  return names.map((name) => {
    const what = NAMED[name]
    if (what === undefined) throw new Error(`nobody knows what ${name} in ${path} names`)
    return [code(name), 'path', 'string', `The ${what}.`]
  })
}

function queryParameters(row: Route): string[][] {
  const required = requiredQuery(row)
  const schema = { type: 'object', properties: querySchemas(row), required }
  return schemaRows(schema).map((each) => parameter(each, 'query'))
}

function headerParameters({ headers }: PublicEndpoint): string[][] {
  return schemaRows({ properties: headers ?? {} }).map((each) => parameter(each, 'header'))
}

function bodyParameters({ body, ...row }: Endpoint): string[][] {
  if (body === undefined) return []
  if (row.path === '/v1/admin/buffers' || row.operationId === 'updateBuffer')
    return [['', 'body', 'object', 'The [fields of a buffer](buffers.md#fields).']]
  if (body.properties === undefined) return [['', 'body', 'any JSON', String(body.description)]]
  return schemaRows(body).map((each) => parameter(each, 'body'))
}

function parameter({ path, type, bounds, initial, required, meaning }: SchemaRow, place: string): string[] {
  const kind = [type, bounds].filter((text) => text !== '').join(', ')
  const given = initial === undefined ? kind : `${kind}, default ${code(String(initial))}`
  return [code(path), required ? `${place}, required` : place, given, meaning]
}

function answersOf(row: Route | PublicEndpoint): readonly Answer[] {
  return isRoute(row) ? [row.answers] : [row.answers, ...(row.otherAnswers ?? [])]
}

function answerText({ status, schema, array }: Answer): string {
  if (schema === undefined) return `${status} without a body`
  const link = `[${schema}](${OWN_PAGES[schema] ?? `#body-${schema.toLowerCase()}`})`
  return array ? `${status} with a list of ${link}` : `${status} with ${link}`
}

/** Of a management endpoint without those that all of its kind have. */
function ownErrorsOf(row: Route | PublicEndpoint): readonly ErrorKey[] {
  if (!isRoute(row)) return row.errors
  const common: readonly ErrorKey[] = [...errorsOfAll, ...errorsOfBodies]
  return errorsOf(row).filter((key) => !common.includes(key))
}

/** The fields of a body, under a heading of its own. */
export function bodyText(name: SchemaName): string {
  const schema: Schema = responseSchemas[name]
  const rows = schemaRows(schema).map(({ path, type, meaning, required }) => [
    code(path),
    required ? type : `${type}, optional`,
    meaning,
  ])
  return `### Body: ${name}\n\n${String(schema.description)}\n\n${table(['field', 'type', 'meaning'], rows)}`
}

export function commonErrors(): string {
  return [
    'Errors of every management endpoint:',
    refusalTable(errorsOfAll),
    'Errors of every endpoint that takes a body:',
    refusalTable(errorsOfBodies),
  ].join('\n\n')
}

export function roleTable(): string {
  return table(
    ['action', ...roles],
    Object.entries(ACTIONS).map(([action, text]) => [
      text,
      ...roles.map((role) =>
        (rolesFor[action as Action] as readonly string[]).includes(role) ? 'yes' : 'no',
      ),
    ]),
  )
}
