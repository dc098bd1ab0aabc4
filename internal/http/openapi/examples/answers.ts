import {
  bucketOf,
  deliveryDurationBounds,
  histogramOf,
  timeToFlushBounds,
} from '../../../domain/histogram.ts'
import type { SchemaName } from '../../schemas/registry.ts'
import { AT, BATCH, BUFFER, CUSTOMER, PROJECT } from './account.ts'
import { billingExamples } from './billing.ts'

/** What the service answers, by the name of the schema: one account, some minutes after its first webhooks. */

const API_KEY = {
  keyId: '0b0cbd58-35fd-4e0e-a6c4-0f7d6c2c9c11',
  name: 'deploy',
  keyPrefix: 'svk_5b1f',
  role: 'member',
  projectIds: ['shop'],
  createdAt: '2025-11-24T16:00:00.000Z',
}

const DLQ_ID = 'dlq_8d3f0b6a5c1e4f7a9b2d6c01'

const DELIVERIES = { ingestCount: 120, deliveryCount: 4, deliverySuccess: 3, deliveryFail: 1 }
const FIGURES = { ...DELIVERIES, retryCount: 2, itemsDelivered: 90 }

export const answerExamples: Readonly<Record<SchemaName, unknown>> = {
  ...billingExamples,
  Accepted: { status: 'accepted', messageId: 'm1', itemId: '7c9e6679-7425-40de-944b-e07fc1f90ae7' },
  AnalyticsSummary: {
    today: { ...DELIVERIES, dlqCount: 1, avgBatchSize: 30, compressionRatio: 30 },
    trend: { ingestDelta: 20, deliveryDelta: -20, successRateDelta: -5 },
    counts: { projects: 1, buffers: 1 },
  },
  AnalyticsTimeseries: {
    timeseries: [{ date: '2025-11-24', ...FIGURES }],
    histograms: {
      timeToFlush: histogramOf(timeToFlushBounds, bucketsOf(timeToFlushBounds, [400, 900, 950, 5000])),
      deliveryDuration: histogramOf(
        deliveryDurationBounds,
        bucketsOf(deliveryDurationBounds, [8, 20, 21, 90]),
      ),
    },
    totals: { ...FIGURES, dlqCount: 1, compressionRatio: 30, successRate: 75 },
  },
  ApiKey: { ...API_KEY, customerId: 'acme', revokedAt: null, lastUsedAt: '2025-11-24T16:04:00.000Z' },
  AuditPage: {
    records: [
      {
        auditId: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
        customerId: 'acme',
        createdAt: AT,
        event: 'change',
        actor: { type: 'key', keyId: API_KEY.keyId },
        method: 'POST',
        route: '/v1/admin/buffers',
        target: { projectId: 'shop', bufferId: 'shop-orders' },
        from: { address: '203.0.113.7' },
        status: 201,
        count: 1,
      },
    ],
    nextCursor: null,
  },
  Buffer: BUFFER,
  BufferTest: { success: true, statusCode: 204, durationMs: 12, responseBody: '', error: null },
  CreatedApiKey: { ...API_KEY, secret: 'svk_5b1f0f3e9d2c4b6a8e7d1c3f5a9b0d2e4c6f8a1b3d5e7f90' },
  Customer: CUSTOMER,
  DeliveryBatch: BATCH,
  DeliveryFailed: {
    error: 'The destination did not accept the batch',
    code: 'delivery_failed',
    dlqId: DLQ_ID,
    itemCount: 2,
    statusCode: 503,
    durationMs: 31.5,
    lastError: 'HTTP 503',
    errorClass: 'http_5xx',
    retryCount: 1,
  },
  DlqItem: {
    dlqId: DLQ_ID,
    customerId: 'acme',
    projectId: 'shop',
    bufferId: 'shop-orders',
    groupId: BATCH.svc.groupHash,
    groupKey: 'ada',
    reason: 'non_retryable_error',
    lastError: 'HTTP 400',
    lastStatusCode: 400,
    lastResponse: '{"error":"unknown customer"}',
    attempt: 0,
    itemCount: 2,
    payloadSummary: { messageIds: ['m1', 'm2'], firstPayloadPreview: '{"customer":"ada","order":1}' },
    payloadStored: true,
    batch: {
      groupHash: BATCH.svc.groupHash,
      segment: 0,
      firstItemAt: AT,
      lastActivityAt: AT + 400,
      groupVersion: 17,
      payloadBytes: 56,
    },
    retryCount: 0,
    lastRetryAt: null,
    createdAt: AT + 1500,
  },
  DlqRetry: {
    success: true,
    status: 'delivered',
    message: 'The destination accepted the batch of 2 items',
    dlqId: DLQ_ID,
    itemCount: 2,
    statusCode: 204,
    durationMs: 12.5,
  },
  Error: { error: 'Project not found' },
  Health: { status: 'ok', version: '0.1.0', checks: { nats: 'ok', postgres: 'ok' } },
  InsufficientCredits: {
    error: 'Insufficient credits',
    credits: 0,
    required: 1,
    message: 'The request needs 1 credits, the balance is 0',
  },
  Project: PROJECT,
  ServiceEntry: {
    service: 'Penstock',
    version: '0.1.0',
    links: {
      health: '/health',
      ingest: '/v1/ingest/{projectId}/{bufferId}',
      docs: '/docs',
      openapi: '/openapi.json',
      whoami: '/v1/admin/whoami',
    },
  },
  BufferStates: {
    tag: 'pGZmVbH0C1VRPsVbW4xnDPXYc2KWm2UbAQ8vMsR6bYc',
    buffers: [
      {
        bufferId: 'orders',
        projectId: 'shop',
        enabled: false,
        pausedReason: 'consecutive_dead_letters',
        pausedAt: 1_764_000_000_000,
        consecutiveDlqCount: 3,
        deadLetters: 3,
        lastDeadLetterAt: 1_764_000_000_000,
        updatedAt: 1_763_900_000_000,
      },
    ],
  },
  WhoAmI: { customerId: 'acme', role: 'member', projects: ['shop'], credits: 9880 },
}

/** What the health check answers while a dependency is away. */
export const unavailableExample = {
  status: 'unavailable',
  version: '0.1.0',
  checks: { nats: 'ok', postgres: 'down' },
}

function bucketsOf(bounds: readonly number[], times: readonly number[]): number[] {
  const buckets = times.map((ms) => bucketOf(bounds, ms))
  return bounds.map((_bound, index) => buckets.filter((bucket) => bucket === index).length)
}
