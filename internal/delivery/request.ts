import type { Dispatcher } from 'undici'
import { isForbiddenHeader } from '../domain/header-names.ts'
import type { DeliveryConfig } from '../domain/model.ts'
import { sign } from '../domain/signature.ts'

/**
 * The request of one delivery (docs/reference/buffers.md, "Deliveries"): the exact bytes of `body`, every configured
 * header, and the service's own, which no configured name can displace or double. A configured `user-agent` stands.
 */
export function deliveryRequest(
  target: DeliveryConfig,
  url: URL,
  key: string,
  body: Uint8Array,
  userAgent: string,
): Dispatcher.DispatchOptions {
  const own = ownHeaders(target, key, body)
  const taken = new Set(own.map(([name]) => name.toLowerCase()))
  const configured = Object.entries(target.headers ?? {}).filter(
    ([name]) => !taken.has(name.toLowerCase()) && !isForbiddenHeader(name),
  )
  const agent = configured.some(([name]) => name.toLowerCase() === 'user-agent')
    ? []
    : [['user-agent', userAgent] as const]
  return {
    path: url.pathname + url.search,
    method: target.method,
    headers: [...configured, ...own, ...agent].flat(),
    // A view, for a copy of a large batch would buy nothing; undici adds the content-length.
    body: Buffer.from(body.buffer, body.byteOffset, body.byteLength),
  }
}

function ownHeaders(target: DeliveryConfig, key: string, body: Uint8Array): (readonly [string, string])[] {
  const headers: (readonly [string, string])[] = [
    ['content-type', 'application/json'],
    [target.idempotencyHeader, key],
  ]
  if (target.signing) headers.push([target.signing.header, sign(target.signing.secret, body)])
  return headers
}
