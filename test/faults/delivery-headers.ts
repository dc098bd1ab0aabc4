/** Finds the idempotency key and the signature of a request, by every name that its buffer ever had for them. */
import { createHmac } from 'node:crypto'

import type { SinkRequest } from '../support/sink.ts'
import type { Delivery, Signature } from './history.ts'
import type { BufferTerms } from './terms.ts'

export type DeliveryHeaders = Pick<Delivery, 'key' | 'keyHeader' | 'signature'>

/** `terms`: all that the buffer ever had. `key` is empty when no header has it. */
export function readHeaders(
  { headers, body }: Pick<SinkRequest, 'headers' | 'body'>,
  terms: readonly BufferTerms[],
): DeliveryHeaders {
  const keyHeaders = new Set(terms.map(({ idempotencyHeader }) => idempotencyHeader))
  const keyHeader = [...keyHeaders].find((name) => headers[name] !== undefined) ?? null
  return {
    key: keyHeader === null ? '' : String(headers[keyHeader]),
    keyHeader,
    signature: readSignature(headers, body, terms),
  }
}

function readSignature(
  headers: SinkRequest['headers'],
  body: Uint8Array,
  terms: readonly BufferTerms[],
): Signature | null {
  const signings = terms.flatMap(({ signing }) => signing ?? [])
  const header = signings.map((signing) => signing.header).find((name) => headers[name] !== undefined)
  if (header === undefined) return null
  const secrets = new Set(signings.map(({ secret }) => secret))
  const isRight = (secret: string) => hmacOf(secret, body) === headers[header]
  return { header, secret: [...secrets].find(isRight) ?? null }
}

/** Lower-case hex HMAC-SHA256 (docs/reference/buffers.md, "Deliveries"). */
function hmacOf(secret: string, body: Uint8Array): string {
  return createHmac('sha256', secret).update(body).digest('hex')
}
