/** What a buffer was told to do at which time, as far as the checker holds deliveries against it. */
import type { Buffer as BufferResource } from '../../internal/domain/model.ts'

export interface BufferTerms {
  readonly customerId: string
  readonly projectId: string
  readonly enabled: boolean
  readonly maxItems: number
  readonly maxBytes: number
  readonly maxAttempts: number
  readonly backoff: BufferResource['throughput']['backoff']
  /** In lower case. */
  readonly idempotencyHeader: string
  /** null: deliveries are not signed. The header in lower case. */
  readonly signing: { readonly header: string; readonly secret: string } | null
}

/** A buffer was created, or changed, to these terms. */
export interface BufferChange {
  readonly bufferId: string
  readonly terms: BufferTerms
  readonly askedAt: number
  /** null: nobody answered; it holds since `askedAt`, or later, or never. */
  answeredAt: number | null
}

/** Of a buffer as the management API shows it to its owner. */
export function termsOf(buffer: BufferResource): BufferTerms {
  const { customerId, projectId, enabled, batch, throughput, delivery } = buffer
  const { signing } = delivery
  return {
    customerId,
    projectId,
    enabled,
    maxItems: batch.maxItems,
    maxBytes: batch.maxBytes,
    maxAttempts: throughput.maxAttempts,
    backoff: throughput.backoff,
    idempotencyHeader: delivery.idempotencyHeader.toLowerCase(),
    signing: signing ? { header: signing.header.toLowerCase(), secret: signing.secret } : null,
  }
}
