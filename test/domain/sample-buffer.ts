import { parseBufferCreate } from '../../internal/domain/buffer.ts'
import type { Buffer, BufferConfig } from '../../internal/domain/model.ts'

type Json = Record<string, unknown>

/** The least body that creates a buffer, with `changes` on its top level. */
export function creation(changes: Json = {}): Json {
  return {
    bufferId: 'orders',
    projectId: 'shop',
    name: 'Orders',
    groupKey: { mode: 'jsonpath', path: '$.data.customer' },
    delivery: { url: 'https://receiver.example/hook' },
    ...changes,
  }
}

/** The same body with one member, named by its dotted path, set. */
export function creationWith(path: string, value: unknown): Json {
  const body = creation()
  const names = path.split('.')
  const last = names.pop() as string
  let node = body
  for (const name of names) {
    node[name] = { ...(node[name] as Json | undefined) }
    node = node[name] as Json
  }
  node[last] = value
  return body
}

/** A stored buffer with secrets in every place that can hold one. */
export function storedBuffer(): Buffer {
  return {
    bufferId: 'orders',
    customerId: 'acme',
    projectId: 'shop',
    name: 'Orders',
    enabled: true,
    groupKey: { mode: 'jsonpath', path: '$.data.customer', fallbackHeader: 'X-Customer' },
    batch: { maxItems: 7, maxBytes: 262_144, idleTimeoutMs: 5000, maxWaitFromFirstMs: 15_000 },
    overflow: { maxGroupItems: 2000, maxGroupBytes: 5_242_880, policy: 'flush_early_then_continue' },
    delivery: {
      url: 'https://receiver.example/hook',
      method: 'POST',
      headers: { Authorization: 'Bearer one', 'X-Tenant': 'two' },
      idempotencyHeader: 'x-idempotency-key',
      signing: { type: 'hmac-sha256', secret: 'three', header: 'x-svc-signature' },
    },
    throughput: {
      maxAttempts: 3,
      backoff: { initialMs: 1000, maxMs: 60_000, multiplier: 2 },
      minDelayBetweenFlushMs: 0,
      maxConcurrencyPerGroup: 1,
    },
    dlqPauseThreshold: 3,
    sourceVerification: {
      enabled: true,
      signingSecret: 'four',
      signatureHeader: 'x-webhook-signature',
      algorithm: 'hmac-sha256',
    },
    analytics: { sampleDeliveryLogs: 0.05 },
    consecutiveDlqCount: 2,
    createdAt: 1000,
    updatedAt: 2000,
  }
}

/** The configuration that `body` creates; throws its error. */
export function configOf(body: unknown): BufferConfig {
  const parsed = parseBufferCreate(body)
  if (!parsed.ok) throw new Error(parsed.error)
  return parsed.value.config
}

/** The error of a creation that must fail. */
export function errorOf(body: unknown): string {
  const parsed = parseBufferCreate(body)
  if (parsed.ok) throw new Error(`accepted ${JSON.stringify(body)}`)
  return parsed.error
}
