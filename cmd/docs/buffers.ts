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
  blocked_destination: ['The host has no address that deliveries may reach.', 'yes'],
  http_4xx: ['The destination answered 400 to 499.', 'no'],
  http_5xx: ['The destination answered 500 to 599.', 'yes'],
  http_other: ['The destination answered another status, such as a redirect.', 'yes'],
}

export function bufferFields(): string {
  const rows = schemaRows(bufferSchema as unknown as Schema)
  return table(['field', 'type', 'default', 'bounds', 'meaning'], rows.map(fieldCells))
}

function fieldCells(row: SchemaRow): string[] {
  return [code(row.path), row.type, defaultOf(row), row.bounds, row.meaning]
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
