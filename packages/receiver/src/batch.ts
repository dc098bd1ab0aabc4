/** The batch that a delivery brings (docs/guide/receivers.md, "What a delivery looks like"). */
import { type HeadersLike, headerOf } from './headers.ts'

export interface BatchSource {
  readonly customerId: string
  readonly projectId: string
  readonly bufferId: string
  readonly groupKey: string
  readonly groupHash: string
  /** Counts up when a group overflows; from 0. */
  readonly segment: number
}

export interface BatchWindow {
  /** Unix milliseconds. */
  readonly firstItemAt: number
  /** Unix milliseconds. */
  readonly lastActivityAt: number
  readonly itemsCount: number
}

export interface Item<Payload = unknown> {
  /** The id of the sender, or a random UUID. Unique within its buffer and group. */
  readonly messageId: string
  /** Unix milliseconds. */
  readonly receivedAt: number
  /** The body of the webhook. Nothing looked at it. */
  readonly payload: Payload
}

export interface Batch<Payload = unknown> {
  readonly svc: BatchSource
  readonly window: BatchWindow
  /** In the order in which they were stored. */
  readonly items: readonly Item<Payload>[]
  /** Names this body for ever: the same key is the same batch, byte for byte. */
  readonly idempotencyKey: string
}

export interface BatchOptions {
  /** Name of the header, as `delivery.idempotencyHeader` of the buffer. Default `x-idempotency-key`. */
  readonly idempotencyHeader?: string
}

/** The request is no batch; the message names the field. */
export class BatchError extends Error {
  override readonly name = 'BatchError'
}

export const IDEMPOTENCY_HEADER = 'x-idempotency-key'
const UTF8 = new TextDecoder('utf-8', { fatal: true })

/** Without a look at the signature: see `unwrap`. Throws a BatchError. Fields that this version does not know are kept. */
export function parseBatch<Payload = unknown>(
  rawBody: Uint8Array | string,
  headers: HeadersLike,
  { idempotencyHeader = IDEMPOTENCY_HEADER }: BatchOptions = {},
): Batch<Payload> {
  const body = parsed(rawBody)
  const idempotencyKey = headerOf(headers, idempotencyHeader) ?? ''
  if (idempotencyKey === '') throw new BatchError(`header ${idempotencyHeader} is required once`)
  requireFields(body, 'svc', {
    ...texts('customerId', 'projectId', 'bufferId', 'groupKey', 'groupHash'),
    segment: 'number',
  })
  requireFields(body, 'window', { firstItemAt: 'number', lastActivityAt: 'number', itemsCount: 'number' })
  requireItems(body.items)
  return { ...(body as unknown as Omit<Batch<Payload>, 'idempotencyKey'>), idempotencyKey }
}

type Fields = Record<string, unknown>

function parsed(rawBody: Uint8Array | string): Fields {
  let body: unknown
  try {
    body = JSON.parse(typeof rawBody === 'string' ? rawBody : UTF8.decode(rawBody))
  } catch (error) {
    throw new BatchError('body must be JSON in UTF-8', { cause: error })
  }
  if (!isObject(body)) throw new BatchError('body must be an object')
  return body
}

function requireItems(items: unknown): void {
  if (!Array.isArray(items)) throw new BatchError('items must be an array')
  for (const [index, item] of items.entries()) {
    requireFields(items, index, { messageId: 'string', receivedAt: 'number' }, 'items.')
    if (!Object.hasOwn(item, 'payload')) throw new BatchError(`items.${index}.payload is required`)
  }
}

function requireFields(
  parent: object,
  name: string | number,
  types: Readonly<Record<string, 'string' | 'number'>>,
  path = '',
): void {
  const value = (parent as Fields)[name]
  if (!isObject(value)) throw new BatchError(`${path}${name} must be an object`)
  const wrong = Object.keys(types).find((field) => typeof value[field] !== types[field])
  if (wrong !== undefined) throw new BatchError(`${path}${name}.${wrong} must be a ${types[wrong]}`)
}

function texts(...names: string[]): Record<string, 'string'> {
  return Object.fromEntries(names.map((name) => [name, 'string'] as const))
}

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
