/** What an attempt carries beside its body: the idempotency key and the signature (docs/reference/buffers.md, "Deliveries"). */
import type { Evidence, Violation } from './evidence.ts'
import type { Delivery } from './history.ts'
import type { BufferTerms } from './terms.ts'

export function checkHeaders(evidence: Evidence): Violation[] {
  return evidence.history.deliveries.flatMap((delivery) => {
    const { key, keyHeader, signature, at } = delivery
    const terms = evidence.termsOf(delivery)
    if (terms.some((each) => hasKeyOf(each, delivery) && isSignedBy(each, delivery))) return []
    return [{ rule: 'headers', detail: { key, at, keyHeader, signature, terms } }]
  })
}

function hasKeyOf({ idempotencyHeader }: BufferTerms, { keyHeader }: Delivery): boolean {
  return keyHeader === idempotencyHeader
}

function isSignedBy({ signing }: BufferTerms, { signature }: Delivery): boolean {
  if (signing === null || signature === null) return signing === null && signature === null
  return signature.header === signing.header && signature.secret === signing.secret
}
