/** The section Limits of docs/reference/api.md: numbers that a caller meets. Those of buffers stand with their fields. */
import { ACTIVE_KEY_LIMIT, KEY_NAME_MAX_LENGTH } from '../../internal/auth/api-keys.ts'
import { MAX_GRANT } from '../../internal/billing/credits.ts'
import { ATTEMPT_PLACES, BODY_BYTES, FILES_PER_ATTEMPT } from '../../internal/delivery/attempt-places.ts'
import { ATTEMPT_DEADLINE_MS, defaultLimits } from '../../internal/delivery/client.ts'
import { LOOKUP_LIMITS, LOOKUP_MS, LOOKUP_WAIT_MS } from '../../internal/delivery/dns/lookups.ts'
import { RESPONSE_KEPT_LIMIT, RESPONSE_READ_LIMIT } from '../../internal/delivery/exchange.ts'
import { LEASE_MS, WAIT_MS } from '../../internal/dlq/retry.ts'
import { BYTES_PER_CREDIT, PADDED_BYTES, PADDED_RATIO } from '../../internal/domain/credits.ts'
import { type ErrorKey, errors } from '../../internal/domain/errors.ts'
import { MAX_GROUP_KEY_BYTES, MAX_MESSAGE_ID_BYTES } from '../../internal/domain/extract.ts'
import { IDENTIFIER_MAX_LENGTH } from '../../internal/domain/identifiers.ts'
import { MAX_DEPTH } from '../../internal/domain/json.ts'
import { NAME_MAX_LENGTH } from '../../internal/domain/names.ts'
import { SPARED_MS } from '../../internal/http/connections.ts'
import {
  ANSWER_STALL_MS,
  ANSWER_TIMEOUT_MS,
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_TIMEOUT_MS,
  MAX_HEADER_BYTES,
  REQUEST_TIMEOUT_MS,
} from '../../internal/http/listener.ts'
import { documentedTable } from '../../internal/http/openapi/document.ts'
import {
  AT_ONCE,
  BURST_SECONDS,
  BYTES_A_TOKEN,
  CUSTOMER_RATIO,
  PROVIDER_AT_ONCE,
  PROVIDER_PER_MINUTE,
} from '../../internal/http/request-limits.ts'
import { MAX_ADMIN_BODY_BYTES } from '../../internal/http/routes/mount.ts'
import { querySchemas } from '../../internal/http/routes/request-shape.ts'
import { TOKEN_LIFETIME_S } from '../../internal/identity/id-tokens.ts'
import { IDS_RATIO } from '../../internal/postgres/caps.ts'
import { PAGE_BYTES } from '../../internal/postgres/dlq-items.ts'
import { REVOKED_KEYS_KEPT } from '../../internal/postgres/revoked-keys.ts'
import { MOST_FLUSHES } from '../../internal/shard/held/last-flushes.ts'
import { CUSTOMER_SHARE, SHARE } from '../../internal/shard/status/shares.ts'
import { readConfig } from '../config/config.ts'
import { TESTS_AT_ONCE } from '../wiring/limits.ts'
import { LEAST } from './configuration.ts'
import { grouped, table } from './table.ts'

type Row = readonly [limit: string, value: string, beyond: string]

const NAMED = '400, the text names the field'

export function limitTable(): string {
  const rows = [...ofRequests(), ...ofTransport(), ...ofResources(), ...ofLists(), ...ofDeliveries()]
  return table(['limit', 'value', 'beyond it'], rows)
}

function ofRequests(): Row[] {
  const { maxBodyBytes } = readConfig({}, 'penstock')
  const largest = `${grouped(maxBodyBytes)} bytes, by [\`PENSTOCK_MAX_BODY_BYTES\`](configuration.md)`
  const price = `1 credit per started ${grouped(BYTES_PER_CREDIT)} bytes of JSON`
  const share = `${SHARE * 100} % of the \`max_bytes\` of the shard's inbox`
  const padded = `${PADDED_RATIO} times its compact JSON, over ${grouped(PADDED_BYTES)} bytes`
  const { all, ofFree } = CUSTOMER_SHARE
  const ofCustomer = `${ofFree} times what is free of ${all * 100} % of the \`max_bytes\` of the shard's inbox`
  const { keyRequestsPerSecond: rate, testsPerMinute } = readConfig(LEAST, 'admin')
  const ofKeys = `${rate} a second in a process, ${BURST_SECONDS * rate} at once, by [\`PENSTOCK_KEY_REQUESTS_PER_SECOND\`](configuration.md)`
  const ofCustomers = `${CUSTOMER_RATIO} times those of a key`
  const { list, bytes } = BYTES_A_TOKEN
  const large = `as many a second as requests: ${grouped(list)} bytes of lists each, ${grouped(bytes)} of stored batches`
  const tests = `${testsPerMinute} a minute in a process, ${TESTS_AT_ONCE} at once, by [\`PENSTOCK_TESTS_PER_MINUTE\`](configuration.md)`
  return [
    ['Price of a webhook', price, beyond('insufficientCredits')],
    ['Body of a webhook', largest, beyond('bodyTooLarge')],
    ['Body of a management request', `${grouped(MAX_ADMIN_BODY_BYTES)} bytes`, beyond('bodyTooLarge')],
    ['Nesting of a body', `${MAX_DEPTH} levels`, beyond('bodyTooDeep')],
    ['Group key', `${grouped(MAX_GROUP_KEY_BYTES)} bytes of UTF-8`, beyond('groupKeyUnusable')],
    ['Message id', `${grouped(MAX_MESSAGE_ID_BYTES)} bytes of UTF-8`, beyond('messageIdUnusable')],
    ['Blanks and escapes of the body of a webhook', padded, beyond('bodyPadded')],
    ['What one buffer holds of a shard', share, beyond('bufferOverShare')],
    ['What one customer holds of a shard', ofCustomer, beyond('customerOverShare')],
    ['Management requests of an API key', ofKeys, beyond('requestRate')],
    ['Management requests of a customer', ofCustomers, beyond('requestRate')],
    [
      'Management requests of a customer at once',
      `${AT_ONCE} in a process; test deliveries, checkouts and cancellations do not count`,
      'waits for its turn',
    ],
    ['Answers to reads of a customer that are under way', `${AT_ONCE} in a process`, 'the next read waits'],
    [
      'Management requests of a customer that wait',
      `${CUSTOMER_RATIO * BURST_SECONDS * rate} in a process`,
      beyond('requestRate'),
    ],
    ['Large answers to reads of a key, and of a customer', large, beyond('requestRate')],
    [
      'Checkouts, cancellations and portal URLs of a customer',
      `${PROVIDER_PER_MINUTE} a minute in a process, ${PROVIDER_AT_ONCE} at once, where requests of keys are limited`,
      beyond('requestRate'),
    ],
    ['Test deliveries of a buffer', tests, beyond('testRate')],
    ['Age of an ID token', `${grouped(TOKEN_LIFETIME_S)} s`, beyond('tokenInvalid')],
  ]
}

function ofTransport(): Row[] {
  const { maxBodiesBytes, maxConnections } = readConfig({}, 'penstock')
  const bodies = `${grouped(maxBodiesBytes)} bytes, by [\`PENSTOCK_MAX_BODIES_BYTES\`](configuration.md)`
  const connections = `${grouped(maxConnections)}, by [\`PENSTOCK_MAX_CONNECTIONS\`](configuration.md)`
  const ofConnections = `one that has idled for ${seconds(SPARED_MS)} is closed, else ${beyond('connectionsBusy')}`
  return [
    ['All request bodies that a process holds', bodies, beyond('bodiesBusy')],
    [
      'Bodies of the webhooks of one customer',
      'half of that, less while others hold some',
      beyond('bodiesBusy'),
    ],
    ['Connections to a process', connections, ofConnections],
    ['Head of a request', `${grouped(MAX_HEADER_BYTES)} bytes`, '431 Request headers are too large'],
    ['Arrival of the head of a request', seconds(HEADERS_TIMEOUT_MS), beyond('bodyTimeout')],
    ['Arrival of a whole request', seconds(REQUEST_TIMEOUT_MS), beyond('bodyTimeout')],
    ['Answer of which nothing is read', seconds(ANSWER_STALL_MS), 'connection reset'],
    ['Answer that is read slowly', seconds(ANSWER_TIMEOUT_MS), 'connection reset'],
    ['Idle connection', seconds(KEEP_ALIVE_TIMEOUT_MS), 'closed'],
  ]
}

function ofResources(): Row[] {
  const { maxCustomers, maxProjects, maxBuffers, signUpsPerMinute } = readConfig(LEAST, 'admin')
  const limit = (count: number, name: string) =>
    `${grouped(count)}, by [\`PENSTOCK_${name}\`](configuration.md)`
  const signUps = `${limit(signUpsPerMinute, 'SIGN_UPS_PER_MINUTE')}, a minute in a process`
  return [
    ['Ids of customers, projects and buffers', `1 to ${IDENTIFIER_MAX_LENGTH} characters`, NAMED],
    ['Names of customers, projects and buffers', `1 to ${NAME_MAX_LENGTH} characters`, NAMED],
    ['Name of an API key', `1 to ${KEY_NAME_MAX_LENGTH} characters`, NAMED],
    ['Active API keys of a customer', `${ACTIVE_KEY_LIMIT}`, beyond('apiKeyLimit')],
    [
      'Revoked API keys of a customer',
      `${REVOKED_KEYS_KEPT}`,
      'the ones that were revoked first are removed',
    ],
    ['Customers that a customer creates', limit(maxCustomers, 'MAX_CUSTOMERS'), beyond('customerLimit')],
    ['Projects of a customer', limit(maxProjects, 'MAX_PROJECTS'), beyond('projectLimit')],
    ['Buffers of a customer', limit(maxBuffers, 'MAX_BUFFERS'), beyond('bufferLimit')],
    ['Ids that a customer uses', `${IDS_RATIO} times its projects and buffers`, beyond('idLimit')],
    ['New customers by ID tokens', signUps, beyond('signUpRate')],
    ['Credits of one grant, local instance', `1 to ${grouped(MAX_GRANT)}`, NAMED],
  ]
}

function ofLists(): Row[] {
  return [
    ['`limit` of dead letters', integerOf('/v1/dlq', 'limit'), NAMED],
    [
      'A page of dead letters',
      `about ${grouped(PAGE_BYTES)} bytes of message ids`,
      'the page ends, and [`cursor`](#dead-letters) goes on',
    ],
    ['`limit` of credit transactions', integerOf('/v1/admin/credits/transactions', 'limit'), NAMED],
    ['`limit` of invoices', integerOf('/v1/admin/invoices', 'limit'), NAMED],
    ['`limit` of the audit', integerOf('/v1/admin/audit', 'limit'), NAMED],
    ['`days` of the timeseries', integerOf('/v1/analytics/timeseries', 'days'), NAMED],
  ]
}

function ofDeliveries(): Row[] {
  const { atOnce, waiting, waitingBytes } = defaultLimits
  const laterLookup = `the attempt waits ${seconds(LOOKUP_WAIT_MS)}, and then its batch`
  const queue = `${grouped(waiting)}, with ${waitingBytes / 1_048_576} MB of bodies; a customer has a share`
  const bodies = `${BODY_BYTES / 1_048_576} MB, three quarters of it for one customer`
  const flushes = `${grouped(MOST_FLUSHES)}, three quarters of it for one customer`
  const places = (count: number) => {
    const part = (FILES_PER_ATTEMPT * ATTEMPT_PLACES.atOnce) / count
    return `${grouped(count)}, or 1/${part} of the files that it may open, where that is less`
  }
  return [
    ['Delivery attempt, connecting included', seconds(ATTEMPT_DEADLINE_MS), 'failed, class `timeout`'],
    ['Connections of a process to one destination', grouped(atOnce), 'attempts wait'],
    ['Attempts of a process that wait for one destination', queue, 'the batch waits in its group'],
    ['Attempts of a customer at once, in a process', places(ATTEMPT_PLACES.perCustomer), 'attempts wait'],
    ['Attempts at once, in a process', places(ATTEMPT_PLACES.atOnce), 'attempts wait'],
    ['Bodies of attempts that run or wait, in a process', bodies, 'the batch waits in its group'],
    [
      'Last flushes that a shard remembers of groups without items',
      flushes,
      'the group may be flushed too soon',
    ],
    ['Idle connections to destinations', 'as many as attempts at once', 'closed after the attempt'],
    ['Lookup of the host name of a destination', seconds(LOOKUP_MS), 'failed, class `dns`'],
    ['Lookups of a customer at once, in a process', grouped(LOOKUP_LIMITS.perCustomer), laterLookup],
    ['Lookups at once, in a process', grouped(LOOKUP_LIMITS.atOnce), laterLookup],
    ['Read of the response of a destination', `${grouped(RESPONSE_READ_LIMIT)} bytes`, 'connection closed'],
    ['Kept of the response of a destination', `${grouped(RESPONSE_KEPT_LIMIT)} bytes`, 'cut off'],
    ['Wait of a manual retry for a connection', seconds(WAIT_MS), beyond('deliveryFailed')],
    ['Lock of a dead letter during a retry', `${seconds(LEASE_MS)} at most`, beyond('retryInProgress')],
  ]
}

/** The bounds and the default of a query parameter. */
export function integerOf(path: string, name: string): string {
  const row = documentedTable().find((each) => each.path === path && each.method === 'GET')
  const schema = row && querySchemas(row)[name]
  if (schema === undefined) throw new Error(`${path} has no ${name}`)
  return `${schema.minimum} to ${schema.maximum}, default ${schema.default}`
}

function beyond(key: ErrorKey): string {
  return `${errors[key].status} ${errors[key].error}`
}

function seconds(ms: number): string {
  return `${ms / 1000} s`
}
