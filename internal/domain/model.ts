/**
 * The resources of the service as its callers see them (docs/reference/api.md).
 * Times are Unix epoch milliseconds unless a field says otherwise; credits are integers.
 */

import type { Currency } from './currency.ts'
import type { SignatureScheme } from './signatures/schemes.ts'

export type Role = 'viewer' | 'member' | 'admin' | 'owner'

export interface Customer {
  customerId: string
  name: string
  enabled: boolean
  credits: number
  creditLimit: number
  creditsUsedThisMonth: number
  createdAt: number
  /** Absent: it is not suspended. */
  suspendedAt?: number
}

export interface Project {
  projectId: string
  customerId: string
  name: string
  enabled: boolean
  createdAt: number
  updatedAt: number
}

export interface GroupKeyConfig {
  mode: 'jsonpath' | 'header'
  path?: string
  fallbackHeader?: string
}

/** Where the message id is looked for before the places that every buffer has; it has at least one member. */
export interface MessageIdConfig {
  path?: string
  header?: string
}

export interface SigningConfig {
  type: 'hmac-sha256'
  secret: string
  header: string
}

export interface DeliveryConfig {
  url: string
  method: 'POST' | 'PUT'
  headers?: Record<string, string>
  idempotencyHeader: string
  signing?: SigningConfig
}

export interface SourceVerification {
  enabled: boolean
  /** Absent: `hex`. */
  scheme?: SignatureScheme
  signingSecret?: string
  /** Good as well, while a sender changes its secret. */
  previousSecret?: string
  signatureHeader: string
  /** Absent: 300. */
  toleranceSeconds?: number
  algorithm: 'hmac-sha256' | 'hmac-sha1'
}

/** What a caller configures, with every default filled in. */
export interface BufferConfig {
  name: string
  enabled: boolean
  groupKey: GroupKeyConfig
  messageId?: MessageIdConfig
  batch: { maxItems: number; maxBytes: number; idleTimeoutMs: number; maxWaitFromFirstMs: number }
  overflow: { maxGroupItems: number; maxGroupBytes: number; policy: 'flush_early_then_continue' }
  delivery: DeliveryConfig
  throughput: {
    maxAttempts: number
    backoff: { initialMs: number; maxMs: number; multiplier: number }
    minDelayBetweenFlushMs: number
    maxConcurrencyPerGroup: number
  }
  dlqPauseThreshold: number
  sourceVerification?: SourceVerification
  /** Whether ingest needs an `X-API-Key`. Absent: it does not. */
  requireApiKey?: boolean
  analytics: { sampleDeliveryLogs: number }
}

/** Why the service disables a buffer (docs/reference/buffers.md, "Automatic pause"). */
export type PauseReason = 'consecutive_dead_letters'

/** A stored buffer, as the admin API returns it. */
export interface Buffer extends BufferConfig {
  bufferId: string
  customerId: string
  projectId: string
  consecutiveDlqCount: number
  /** Why the service itself has disabled it; absent: it has not. */
  pausedReason?: PauseReason
  /** Since when; there with `pausedReason`. */
  pausedAt?: number
  createdAt: number
  updatedAt: number
}

/** What of a buffer cannot be read: its members hold a placeholder instead (`domain/buffer-secrets.ts`). */
export interface Unreadable {
  /** The secret by which webhooks are verified. */
  readonly source: boolean
  /** A secret of the delivery. */
  readonly delivery: boolean
  /** The first of them, and why; never its value. */
  readonly why: string
}

/**
 * A buffer as nodes hold it. `uid` is the internal identity (a lower-case UUID): a deleted and re-created
 * buffer has another one and inherits nothing. Ids, customer and project of one uid never change.
 * `version` grows with each change of the row.
 */
export interface BufferRecord {
  readonly uid: string
  readonly version: number
  /** Soft-deleted: ingest answers 404; what is buffered is delivered or, when disabled, discarded. */
  readonly deleted: boolean
  /** Its customer is suspended: ingest answers 403, and what is buffered is held, also of a deleted one. */
  readonly suspended: boolean
  /** Ingest that needs the secret is 503, deliveries that need it are held. Absent: all of it can be read. */
  readonly unreadable?: Unreadable
  /** Its row is gone: only its ids are known, and the configuration says nothing. Nothing of it can be delivered. */
  readonly removed?: true
  readonly buffer: Buffer
}

/**
 * What becomes of a customer that created another one through the API and reads it, when the installation gives that one
 * out: it reads it no more, or goes on.
 */
export type Creator = 'take-over' | 'keep'

export interface ApiKeyRecord {
  keyId: string
  customerId: string
  name: string
  keyPrefix: string
  role: Role
  /** undefined: all projects of the customer. */
  projectIds?: string[]
  createdAt: string
  revokedAt: string | null
  lastUsedAt: string | null
}

/** A key as nodes hold it. */
export interface KnownKey extends ApiKeyRecord {
  /** Its customer is suspended. */
  suspended: boolean
}

export type DlqReason = 'max_retries_exceeded' | 'non_retryable_error'

/** Why a batch was closed (docs/reference/buffers.md, "Processing"). `segment`: its segment is full. */
export type FlushReason = 'items' | 'bytes' | 'idle' | 'max_wait' | 'segment'

/** Class of a failed delivery attempt (docs/architecture/protocol.md, "Delivery"). */
export type ErrorClass =
  | 'timeout'
  | 'connection'
  | 'dns'
  | 'tls'
  | 'blocked_destination'
  | 'http_4xx'
  | 'http_5xx'
  | 'http_other'

export interface DlqItem {
  dlqId: string
  customerId: string
  projectId: string
  bufferId: string
  groupId: string
  groupKey: string
  reason: DlqReason
  lastError: string
  lastStatusCode: number
  /** Beginning of what the destination answered to the last attempt; absent: nothing. */
  lastResponse?: string
  attempt: number
  itemCount: number
  payloadSummary: { messageIds: string[]; firstPayloadPreview: string }
  payloadStored: boolean
  batch: {
    groupHash: string
    segment: number
    firstItemAt: number
    lastActivityAt: number
    groupVersion: number
    payloadBytes: number
  }
  retryCount: number
  lastRetryAt: number | null
  createdAt: number
}

/** Money is in cents. */
export interface Plan {
  planId: string
  name: string
  /** Legacy: the monthly price in `currency`; `prices` replaces it. */
  priceInCents: number
  currency: Currency
  /** Monthly, at least one. */
  prices: Partial<Record<Currency, number>>
  creditsPerCycle: number
  isActive: boolean
}

export type SubscriptionStatus = 'PENDING' | 'ACTIVE' | 'CANCELLING' | 'CANCELLED' | 'PAST_DUE'

export interface Subscription {
  subscriptionId: string
  customerId: string
  planId: string
  status: SubscriptionStatus
  currentPeriodStart: number
  currentPeriodEnd: number
  autoRenew: boolean
}

export type InvoiceStatus = 'open' | 'paid' | 'void' | 'refunded'

export interface Invoice {
  invoiceId: string
  customerId: string
  subscriptionId: string
  status: InvoiceStatus
  /** Cents. */
  amount: number
  paidAt: number | null
  createdAt: number
}

export interface CreditTransaction {
  transactionId: string
  customerId: string
  /** Positive for grants, purchases and refunds, negative for consumption. */
  amount: number
  type: 'grant' | 'purchase' | 'consumption' | 'refund'
  description: string
  balanceAfter: number
  createdAt: number
}

/** A pack as it is offered in one currency. */
export interface CreditPack {
  packId: string
  credits: number
  priceInCents: number
  currency: Currency
  /** Price of 1,000 credits in cents, may be fractional. */
  pricePer1kCents: number
  /** The plan whose rate a credit applies. */
  tier: Pick<Plan, 'planId' | 'name' | 'priceInCents' | 'creditsPerCycle'>
  /** Whether it has an offer at the payment provider. */
  available: boolean
  /** A bigger pack that costs the same or less. */
  betterValue: Pick<CreditPack, 'packId' | 'credits' | 'priceInCents'> | null
}
