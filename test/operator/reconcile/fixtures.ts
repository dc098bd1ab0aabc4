/** What a pass may find, made up: a resource, its Secrets, and the buffer that the service has of it. */
import type { Buffer as StoredBuffer } from '../../../internal/domain/model.ts'
import {
  bufferIdOf,
  type DesiredBuffer,
  desiredBufferOf,
} from '../../../operator/reconcile/desired-buffer.ts'
import type { Observed } from '../../../operator/reconcile/observed.ts'
import type { SecretResource } from '../../../operator/reconcile/ports.ts'
import { apiKey, secretVersions } from '../../../operator/reconcile/secret-values.ts'
import {
  API_VERSION,
  type BufferResource,
  type BufferSpec,
  type BufferStatus,
  FINALIZER,
  KIND,
  type ResourceMetadata,
} from '../../../operator/resource.ts'

export const NOW = Date.parse('2026-03-01T12:00:00Z')
export const JUST_NOW = new Date(NOW - 1_000).toISOString()
export const KEY = `svk_${'0a'.repeat(24)}`
export const SIGNING = 'signing-secret-of-orders'

export function secret(name: string, values: Record<string, string>, resourceVersion = '7'): SecretResource {
  const data = Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')])
  return {
    metadata: { name, namespace: 'shop', uid: `uid-of-${name}`, resourceVersion },
    data: Object.fromEntries(data),
  }
}

export const SECRETS: readonly SecretResource[] = [
  secret('penstock', { apiKey: KEY }),
  secret('signing', { secret: SIGNING }, '9'),
]

/** With the defaults of the definition filled in. */
export function spec(more: Partial<BufferSpec> = {}): BufferSpec {
  return {
    projectId: 'shop',
    groupKey: { mode: 'jsonpath', path: '$.customer' },
    batch: { maxItems: 50, maxBytes: 262_144, idleTimeoutMs: 5_000, maxWaitFromFirstMs: 15_000 },
    overflow: { maxGroupItems: 2_000, maxGroupBytes: 5_242_880, policy: 'flush_early_then_continue' },
    delivery: {
      url: 'https://shop.example/hook',
      method: 'POST',
      idempotencyHeader: 'x-idempotency-key',
      signing: {
        type: 'hmac-sha256',
        header: 'x-svc-signature',
        secretKeyRef: { name: 'signing', key: 'secret' },
      },
    },
    throughput: {
      maxAttempts: 3,
      minDelayBetweenFlushMs: 0,
      maxConcurrencyPerGroup: 1,
      backoff: { initialMs: 1_000, maxMs: 60_000, multiplier: 2 },
    },
    dlqPauseThreshold: 3,
    sourceVerification: {
      enabled: false,
      signatureHeader: 'x-webhook-signature',
      algorithm: 'hmac-sha256',
    },
    analytics: { sampleDeliveryLogs: 0.05 },
    credentialsRef: { name: 'penstock', key: 'apiKey' },
    deletionPolicy: 'Delete',
    adoptionPolicy: 'Never',
    ...more,
  }
}

export interface Given {
  metadata?: Partial<ResourceMetadata>
  spec?: Partial<BufferSpec>
  status?: BufferStatus
  secrets?: readonly SecretResource[]
}

export function resource({ metadata = {}, spec: wanted = {}, status }: Given = {}): BufferResource {
  return {
    apiVersion: API_VERSION,
    kind: KIND,
    metadata: {
      name: 'orders',
      namespace: 'shop',
      uid: 'uid-1',
      resourceVersion: '100',
      generation: 1,
      creationTimestamp: '2026-03-01T11:00:00Z',
      finalizers: [FINALIZER],
      ...metadata,
    },
    spec: spec(wanted),
    ...(status && { status }),
  }
}

/** The status of a resource that was created and found in order, at generation 1. */
export const SYNCED: BufferStatus = {
  observedGeneration: 1,
  bufferId: 'orders',
  customerId: 'acme',
  intentGeneration: 1,
  ingestPath: '/v1/ingest/shop/orders',
  enabled: true,
  host: 'shop.example',
  consecutiveDlqCount: 0,
  secretVersions: [
    { name: 'penstock', resourceVersion: '7' },
    { name: 'signing', resourceVersion: '9' },
  ],
  lastSyncTime: '2026-03-01T11:00:00Z',
  conditions: [
    {
      type: 'Ready',
      status: 'True',
      reason: 'Synced',
      message: 'buffer orders is as described here',
      observedGeneration: 1,
      lastTransitionTime: '2026-03-01T11:00:00Z',
    },
  ],
}

export const CLAIMED: BufferStatus = { bufferId: 'orders', intentGeneration: 1 }

export function observed(given: Given & Partial<Observed> = {}): Observed {
  const { metadata: _m, spec: _s, status: _t, secrets = SECRETS, ...rest } = given
  const subject = rest.resource ?? resource(given)
  const find = (name: string) => secrets.find((each) => each.metadata?.name === name)
  return {
    resource: subject,
    bufferId: bufferIdOf(subject),
    rival: undefined,
    key: apiKey(subject.spec.credentialsRef, find),
    lastKeys: [],
    mayStrand: find(subject.spec.credentialsRef.name) === undefined,
    strandedMs: 0,
    claimed: false,
    told: undefined,
    desired: desiredBufferOf(subject, find),
    secretVersions: secretVersions(subject, find),
    restMs: 0,
    now: NOW,
    ...rest,
  }
}

/** What the service has of `resource`, but for `more`. */
export function stored(subject: BufferResource = resource(), more: Partial<StoredBuffer> = {}): StoredBuffer {
  const find = (name: string) => SECRETS.find((each) => each.metadata?.name === name)
  const desired = desiredBufferOf(subject, find) as DesiredBuffer
  return {
    bufferId: desired.bufferId,
    projectId: desired.projectId,
    customerId: 'acme',
    enabled: true,
    ...desired.config,
    consecutiveDlqCount: 0,
    createdAt: 1,
    updatedAt: 1,
    ...more,
  }
}
