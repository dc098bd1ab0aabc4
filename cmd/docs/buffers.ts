/** The parts of docs/reference/buffers.md that the code knows. */
import { bufferSchema } from '../../internal/domain/buffer-schema.ts'
import { forbiddenHeaderPrefixes, forbiddenHeaders } from '../../internal/domain/header-names.ts'
import type { ErrorClass, FlushReason } from '../../internal/domain/model.ts'
import { deliveryBatchSchema } from '../../internal/http/schemas/dead-letters.ts'
import type { Schema } from '../../internal/http/schemas/shape.ts'
import { type SchemaRow, schemaRows } from './schema-rows.ts'
import { code, table, wrapped } from './table.ts'

/** Set by the service alone: what a creation cannot say and a change cannot touch. */
const READ_ONLY = ['consecutiveDlqCount', 'pausedReason', 'pausedAt', 'createdAt', 'updatedAt']

/** A value of each field that holds one, as it stands in JSON; the same buffer throughout. */
export const fieldExamples: Readonly<Record<string, unknown>> = {
  bufferId: 'orders',
  projectId: 'shop',
  customerId: 'local',
  name: 'Orders by customer',
  enabled: false,
  'groupKey.mode': 'jsonpath',
  'groupKey.path': '$.data.customer',
  'groupKey.fallbackHeader': 'x-customer',
  'messageId.path': '$.data.id',
  'messageId.header': 'x-event-id',
  'batch.maxItems': 100,
  'batch.maxBytes': 1_048_576,
  'batch.idleTimeoutMs': 2000,
  'batch.maxWaitFromFirstMs': 30_000,
  'overflow.maxGroupItems': 10_000,
  'overflow.maxGroupBytes': 67_108_864,
  'overflow.policy': 'flush_early_then_continue',
  'delivery.url': 'https://shop.example.com/hooks',
  'delivery.method': 'PUT',
  'delivery.headers': { authorization: 'Bearer s3cret' },
  'delivery.idempotencyHeader': 'idempotency-key',
  'delivery.signing.type': 'hmac-sha256',
  'delivery.signing.secret': 's3cret',
  'delivery.signing.header': 'x-signature',
  'throughput.maxAttempts': 5,
  'throughput.backoff.initialMs': 500,
  'throughput.backoff.maxMs': 300_000,
  'throughput.backoff.multiplier': 4,
  'throughput.minDelayBetweenFlushMs': 1000,
  'throughput.maxConcurrencyPerGroup': 4,
  dlqPauseThreshold: 1,
  'sourceVerification.enabled': true,
  'sourceVerification.scheme': 'stripe',
  'sourceVerification.signingSecret': 'sh4red',
  'sourceVerification.previousSecret': '0ld',
  'sourceVerification.signatureHeader': 'x-shop-signature',
  'sourceVerification.toleranceSeconds': 600,
  'sourceVerification.algorithm': 'hmac-sha256',
  requireApiKey: true,
  'analytics.sampleDeliveryLogs': 1,
  consecutiveDlqCount: 0,
  pausedReason: 'consecutive_dead_letters',
  pausedAt: 1_764_000_000_000,
  createdAt: 1_764_000_000_000,
  updatedAt: 1_764_000_000_000,
}

const REASONS: Record<FlushReason, string> = {
  items: 'It holds `batch.maxItems` items.',
  bytes: 'Its payloads total `batch.maxBytes` bytes.',
  segment: 'Its oldest segment is full ([Segments](#segments)).',
  idle: 'No item arrived for `batch.idleTimeoutMs`.',
  max_wait: 'Its oldest item has waited for `batch.maxWaitFromFirstMs`.',
}

const ERROR_CLASSES: Record<ErrorClass, readonly [meaning: string, retried: 'yes' | 'no']> = {
  timeout: ['No head of a response arrived within 10 s, or connecting timed out.', 'yes'],
  connection: ['The connection was refused, broke off, or carried something that is not HTTP.', 'yes'],
  dns: ['The host name does not resolve, or its name servers do not answer.', 'yes'],
  tls: ['The TLS handshake failed, for example because the certificate is not trusted.', 'yes'],
  blocked_destination: [
    'The host has no address that deliveries may reach, or they may not reach its port.',
    'yes',
  ],
  http_4xx: ['The destination answered 400 to 499.', 'no'],
  http_5xx: ['The destination answered 500 to 599.', 'yes'],
  http_other: ['The destination answered another status, such as a redirect.', 'yes'],
}

export function bufferFields(): string {
  const rows = schemaRows(bufferSchema as unknown as Schema)
  return table(['field', 'type', 'default', 'bounds', 'meaning', 'example'], rows.map(fieldCells))
}

function fieldCells(row: SchemaRow): string[] {
  return [code(row.path), row.type, defaultOf(row), row.bounds, row.meaning, exampleOf(row)]
}

/** Throws for a field that has none: whoever adds a field gives an example. */
function exampleOf({ path, type }: SchemaRow): string {
  const example = fieldExamples[path]
  // Of an object with members only these have values.
  if (example === undefined && type === 'object') return ''
  if (example === undefined) throw new Error(`${path} has no example in fieldExamples (cmd/docs/buffers.ts)`)
  return code(JSON.stringify(example))
}

function defaultOf({ path, initial, required, type }: SchemaRow): string {
  if (READ_ONLY.includes(path)) return 'read-only'
  if (path === 'customerId') return 'the caller'
  if (initial !== undefined && type !== 'object') return code(String(initial))
  // Of an object with defaults only its members' matter.
  if (initial !== undefined) return ''
  return required ? 'required' : 'none'
}

export function reservedHeaders(): string {
  const names = forbiddenHeaders.map((name) => `\`${name}\``)
  const prefixes = forbiddenHeaderPrefixes.map((prefix) => `\`${prefix}…\``)
  return wrapped(`Reserved names: ${[...names, ...prefixes].join(', ')}.`)
}

export function flushReasons(): string {
  return table(
    ['reason', 'the group is flushed when'],
    Object.entries(REASONS).map(([reason, meaning]) => [code(reason), meaning]),
  )
}

export function deliveryBatch(): string {
  const rows = schemaRows(deliveryBatchSchema)
  return table(
    ['field', 'type', 'meaning'],
    rows.map((row) => [code(row.path), row.type, row.meaning]),
  )
}

export function errorClasses(): string {
  return table(
    ['class', 'meaning', 'retried'],
    Object.entries(ERROR_CLASSES).map(([name, [meaning, retried]]) => [code(name), meaning, retried]),
  )
}
