/**
 * HMAC-SHA256 signatures, outgoing and incoming: lower-case hex of the raw body (docs/architecture/protocol.md,
 * "Delivery").
 */
import { createHmac, hash, timingSafeEqual } from 'node:crypto'

export function sign(secret: string, body: Uint8Array): string {
  return createHmac('sha256', secret).update(body).digest('hex')
}

/**
 * Whether `presented` is the signature of `body`, in constant time. Both sides are hashed first: they become
 * equally long, which `timingSafeEqual` demands, and tell nothing about each other.
 */
export function verifySignature(secret: string, body: Uint8Array, presented: string): boolean {
  const digest = (text: string) => hash('sha256', text, 'buffer')
  return timingSafeEqual(digest(presented), digest(sign(secret, body)))
}
