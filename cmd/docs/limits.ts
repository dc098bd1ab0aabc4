/** The section Limits of docs/reference/api.md: numbers that a caller meets. Those of buffers stand with their fields. */
import { activeKeyLimit, keyNameMaxLength } from '../../internal/auth/api-keys.ts'
import { maxGrant } from '../../internal/billing/credits.ts'
import { attemptDeadlineMs, defaultLimits } from '../../internal/delivery/client.ts'
import { responseKeptLimit, responseReadLimit } from '../../internal/delivery/exchange.ts'
import { LEASE_MS, WAIT_MS } from '../../internal/dlq/retry.ts'
import { bytesPerCredit } from '../../internal/domain/credits.ts'
import { type ErrorKey, errors } from '../../internal/domain/errors.ts'
import { maxGroupKeyBytes, maxMessageIdBytes } from '../../internal/domain/extract.ts'
import { identifierMaxLength } from '../../internal/domain/identifiers.ts'
import { maxDepth } from '../../internal/domain/json.ts'
import { nameMaxLength } from '../../internal/domain/names.ts'
import {
  headersTimeoutMs,
  keepAliveTimeoutMs,
  maxHeaderBytes,
  requestTimeoutMs,
} from '../../internal/http/listener.ts'
import { documentedTable } from '../../internal/http/openapi/document.ts'
import { MAX_ADMIN_BODY_BYTES } from '../../internal/http/routes/mount.ts'
import { querySchemas } from '../../internal/http/routes/request-shape.ts'
import { tokenLifetimeS } from '../../internal/identity/id-tokens.ts'
import { SHARE } from '../../internal/shard/status/shares.ts'
import { readConfig } from '../config/config.ts'
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
  const price = `1 credit per started ${grouped(bytesPerCredit)} bytes of JSON`
  const share = `${SHARE * 100} % of the \`max_bytes\` of the shard's inbox`
  return [
    ['Price of a webhook', price, beyond('insufficientCredits')],
    ['Body of a webhook', largest, beyond('bodyTooLarge')],
    ['Body of a management request', `${grouped(MAX_ADMIN_BODY_BYTES)} bytes`, beyond('bodyTooLarge')],
    ['Nesting of a body', `${maxDepth} levels`, beyond('bodyTooDeep')],
    ['Group key', `${grouped(maxGroupKeyBytes)} bytes of UTF-8`, beyond('groupKeyUnusable')],
    ['Message id', `${grouped(maxMessageIdBytes)} bytes of UTF-8`, beyond('messageIdUnusable')],
    ['What one buffer holds of a shard', share, beyond('bufferOverShare')],
    ['Age of an ID token', `${grouped(tokenLifetimeS)} s`, beyond('tokenInvalid')],
  ]
}

function ofTransport(): Row[] {
  return [
    ['Head of a request', `${grouped(maxHeaderBytes)} bytes`, '431 Request headers are too large'],
    ['Arrival of the head of a request', seconds(headersTimeoutMs), beyond('bodyTimeout')],
    ['Arrival of a whole request', seconds(requestTimeoutMs), beyond('bodyTimeout')],
    ['Idle connection', seconds(keepAliveTimeoutMs), 'closed'],
  ]
}

function ofResources(): Row[] {
  return [
    ['Ids of customers, projects and buffers', `1 to ${identifierMaxLength} characters`, NAMED],
    ['Names of customers, projects and buffers', `1 to ${nameMaxLength} characters`, NAMED],
    ['Name of an API key', `1 to ${keyNameMaxLength} characters`, NAMED],
    ['Active API keys of a customer', `${activeKeyLimit}`, beyond('apiKeyLimit')],
    ['Credits of one grant, local instance', `1 to ${grouped(maxGrant)}`, NAMED],
  ]
}

function ofLists(): Row[] {
  return [
    ['`limit` of dead letters', integerOf('/v1/dlq', 'limit'), NAMED],
    ['`limit` of credit transactions', integerOf('/v1/admin/credits/transactions', 'limit'), NAMED],
    ['`limit` of invoices', integerOf('/v1/admin/invoices', 'limit'), NAMED],
    ['`days` of the timeseries', integerOf('/v1/analytics/timeseries', 'days'), NAMED],
  ]
}

function ofDeliveries(): Row[] {
  const { connections, waiting, waitingBytes } = defaultLimits
  const queue = `${grouped(waiting)}, with ${waitingBytes / 1_048_576} MB of bodies`
  return [
    ['Delivery attempt, connecting included', seconds(attemptDeadlineMs), 'failed, class `timeout`'],
    ['Connections of a process to one destination', grouped(connections), 'attempts wait'],
    ['Attempts of a process that wait for one destination', queue, 'the batch waits in its group'],
    ['Read of the response of a destination', `${grouped(responseReadLimit)} bytes`, 'connection closed'],
    ['Kept of the response of a destination', `${grouped(responseKeptLimit)} bytes`, 'cut off'],
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
