/**
 * HMAC-SHA256 signatures, outgoing and incoming: lower-case hex of the raw body (docs/architecture/protocol.md,
 * "Delivery").
 */
import { createHmac, timingSafeEqual } from 'node:crypto'

export function sign(secret: string, body: Uint8Array): string {
  return createHmac('sha256', secret).update(body).digest('hex')
}

/** Whether `presented` is the signature of `body`. It takes the same time wherever the two differ; only the length shows. */
export function verifySignature(secret: string, body: Uint8Array, presented: string): boolean {
  const [expected, given] = [Buffer.from(sign(secret, body)), Buffer.from(presented)]
  return given.length === expected.length && timingSafeEqual(given, expected)
}
