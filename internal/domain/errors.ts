/**
 * Every error that a caller can be answered: status, text and, for some, a `code` (docs/reference/errors.md, "Errors").
 */

import { PADDED_BYTES, PADDED_RATIO } from './credits.ts'
import { MAX_DEPTH } from './json.ts'
import type { Parsed } from './parsed.ts'
import { type Action, requiredRoles } from './roles.ts'

export interface ErrorEntry {
  readonly status: number
  /** Default text of the body's `error`. */
  readonly error: string
  readonly code?: string
  /** Answered as an HTML Bad Request page, not as JSON. */
  readonly html?: true
  /** Seconds, the `Retry-After` header. */
  readonly retryAfter?: number
  /** The `WWW-Authenticate` header: how one may identify oneself instead (RFC 9110, 11.6.1). */
  readonly challenge?: string
}

/** Of management requests. `X-API-Key` is no scheme of HTTP and has no challenge of its own. */
const CHALLENGE = 'Bearer realm="penstock"'

export const errors = {
  // Ingest
  groupKeyMissing: { status: 400, error: 'Could not extract group key from request' },
  groupKeyUnusable: { status: 400, error: 'Group key is not usable' },
  messageIdUnusable: { status: 400, error: 'messageId is not usable' },
  bufferDisabled: { status: 400, error: 'Buffer is disabled' },
  bufferNotInProject: { status: 400, error: 'Buffer does not belong to this project' },
  ingestBodyNotJson: { status: 400, error: 'Bad Request', html: true },
  bodyTooDeep: { status: 400, error: `Request body is nested more than ${MAX_DEPTH} levels deep` },
  signatureMissing: { status: 401, error: 'Missing signature header' },
  signatureInvalid: { status: 401, error: 'Invalid signature' },
  signatureStale: { status: 401, error: 'Time stamp of the signature is too far from now' },
  ingestKeyInvalid: { status: 401, error: 'Unauthorized' },
  ingestKeyMissing: { status: 401, error: 'This buffer takes only webhooks with an API key in X-API-Key' },
  ingestKeyForeign: { status: 403, error: 'API key does not have access to this buffer' },
  insufficientCredits: { status: 429, error: 'Insufficient credits' },
  bodyTimeout: { status: 408, error: 'Request took too long to arrive' },
  bodyTooLarge: { status: 413, error: 'Request body is too large' },
  bodyPadded: {
    status: 413,
    error: `Request body is over ${PADDED_BYTES} bytes and more than ${PADDED_RATIO} times its compact JSON`,
  },
  bodyEncoded: { status: 415, error: 'Request bodies with a Content-Encoding are not supported' },
  bodiesBusy: { status: 503, error: 'Too many request bodies are under way, try again', retryAfter: 1 },
  storageUnavailable: { status: 503, error: 'Storage is unavailable, try again', retryAfter: 1 },
  /** Also of what management requests need a secret for. */
  secretUnreadable: {
    status: 503,
    error: 'A secret of this buffer cannot be read, set it anew',
    code: 'secret_unreadable',
    retryAfter: 60,
  },
  bufferOverShare: {
    status: 503,
    error: 'Buffer holds its full share of storage, try again later',
    retryAfter: 5,
  },
  customerOverShare: {
    status: 503,
    error: 'Account holds its full share of storage, try again later',
    retryAfter: 5,
  },

  // Requests in general
  invalidRequest: { status: 400, error: 'Invalid request' },
  bodyNotJson: { status: 400, error: 'Request body is not valid JSON' },
  credentialMissing: { status: 401, error: 'Missing credential', challenge: CHALLENGE },
  keyInvalid: { status: 401, error: 'Invalid or revoked API key', challenge: CHALLENGE },
  tokenInvalid: { status: 401, error: 'Invalid or expired ID token', challenge: CHALLENGE },
  accountSuspended: { status: 403, error: 'Account is suspended', code: 'account_suspended' },
  emailNotVerified: { status: 403, error: 'E-mail address is not verified', code: 'email_not_verified' },
  accountAnonymous: { status: 403, error: 'Anonymous accounts cannot sign up' },
  identityUnavailable: {
    status: 503,
    error: 'Identity provider cannot be reached, try again or use an API key',
    retryAfter: 5,
  },
  roleMissing: { status: 403, error: 'Forbidden' },
  customerForeign: { status: 403, error: 'customerId differs from the authenticated customer' },
  projectForeign: { status: 403, error: 'API key does not have access to this project' },
  requestRate: {
    status: 429,
    error: 'Too many requests of this API key or account, try again later',
    code: 'rate_limited',
  },
  signUpRate: { status: 429, error: 'Too many new accounts, try again later', code: 'rate_limited' },
  routeNotFound: { status: 404, error: 'Not found' },
  internal: { status: 500, error: 'Internal server error' },
  connectionsBusy: { status: 503, error: 'Too many connections, try again', retryAfter: 1 },
  databaseUnavailable: { status: 503, error: 'Database is unavailable, try again', retryAfter: 1 },

  // Customers, projects, buffers
  customerNotFound: { status: 404, error: 'Customer not found' },
  customerExists: { status: 409, error: 'Customer already exists' },
  /** Named in the body of a creation, not in the path. */
  customerUnknown: { status: 400, error: 'Customer not found' },
  projectNotFound: { status: 404, error: 'Project not found' },
  projectUnknown: { status: 400, error: 'Project not found' },
  projectExists: { status: 409, error: 'Project already exists' },
  projectHasBuffers: { status: 400, error: 'Project still has buffers' },
  bufferNotFound: { status: 404, error: 'Buffer not found' },
  bufferExists: { status: 409, error: 'Buffer already exists' },
  customerLimit: {
    status: 409,
    error: 'Account has created as many customers as it may',
    code: 'limit_reached',
  },
  projectLimit: { status: 409, error: 'Account has as many projects as it may', code: 'limit_reached' },
  bufferLimit: { status: 409, error: 'Account has as many buffers as it may', code: 'limit_reached' },
  /** Ids stay their customer's for ever, so each one takes room for ever. */
  idLimit: {
    status: 409,
    error: 'Account has used as many ids as it may, use one again that it had before',
    code: 'limit_reached',
  },
  testRate: {
    status: 429,
    error: 'Too many test deliveries of this buffer, try again later',
    code: 'rate_limited',
  },
  cloneFailed: { status: 400, error: 'Buffer could not be cloned' },

  // Dead letter queue
  deadLetterNotFound: { status: 404, error: 'DLQ item not found' },
  deadLetterForeign: { status: 403, error: 'DLQ item belongs to another customer' },
  payloadUnavailable: {
    status: 409,
    error: 'The full batch of this DLQ item is not stored',
    code: 'payload_unavailable',
  },
  retryInProgress: {
    status: 409,
    error: 'Another retry of this DLQ item is in progress',
    code: 'retry_in_progress',
  },
  deliveryFailed: { status: 502, error: 'The destination did not accept the batch', code: 'delivery_failed' },

  // API keys
  apiKeyNotFound: { status: 404, error: 'API key not found' },
  apiKeyRevoked: { status: 409, error: 'API key is already revoked' },
  apiKeyRoleHigher: { status: 403, error: 'API key has a higher role than your own' },
  apiKeyLimit: { status: 409, error: 'Account already has 10 active API keys' },
  roleTooHigh: { status: 403, error: 'role must not be higher than your own' },
  projectsTooBroad: { status: 403, error: 'projectIds must not be broader than your own access' },

  // Credits, subscription, invoices
  currencyUnsupported: { status: 400, error: 'currency is not supported', code: 'unsupported_currency' },
  packNotFound: { status: 404, error: 'Credit pack not found' },
  packUnavailable: { status: 409, error: 'Credit pack is not yet available for purchase' },
  subscriptionRequired: {
    status: 403,
    error: 'Credit packs can be bought only with an active subscription',
    code: 'subscription_required',
  },
  providerUnconfigured: { status: 503, error: 'Payment provider is not configured' },
  /** It failed, refused or did not answer: nothing was changed here, and the request may be repeated. */
  providerUnavailable: { status: 503, error: 'Payment provider did not agree, try again', retryAfter: 5 },
  subscriptionExists: {
    status: 409,
    error: 'Account already has a subscription',
    code: 'subscription_exists',
  },
  portalNotFound: { status: 404, error: 'Account has bought nothing yet' },
  notificationInvalid: { status: 400, error: 'Notification is not valid' },
  notificationLater: {
    status: 503,
    error: 'Notification cannot be applied yet, tell it again',
    retryAfter: 60,
  },
  planNotFound: { status: 404, error: 'Plan not found' },
  planInactive: { status: 400, error: 'Plan is not active' },
  planWithoutCheckout: { status: 404, error: 'Plan has no checkout URL' },
  subscriptionNotFound: { status: 404, error: 'No active subscription' },
  subscriptionCancelling: { status: 409, error: 'Subscription is already being cancelled' },
  subscriptionCancelled: { status: 409, error: 'Subscription is already cancelled' },
  invoiceNotFound: { status: 404, error: 'Invoice not found' },
  invoiceForeign: { status: 403, error: 'Invoice belongs to another customer' },
} as const satisfies Record<string, ErrorEntry>

export type ErrorKey = keyof typeof errors

/** Body of an error answer: `error`, sometimes `code` and `message`, and what an endpoint adds. */
export interface ErrorBody {
  error: string
  code?: string
  message?: string
  [field: string]: unknown
}

/** An answer that refuses a request. Thrown by use cases; the HTTP adapter answers `status` and `body`. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly key: ErrorKey
  readonly entry: ErrorEntry
  readonly body: ErrorBody
  /** The `Retry-After` header, whole seconds; undefined: none. */
  readonly retryAfter: number | undefined

  /**
   * `fields` are added to the body; an `error` among them replaces the registry's text. `retryAfterMs` replaces the
   * registry's `retryAfter`.
   */
  constructor(
    key: ErrorKey,
    fields: Record<string, unknown> = {},
    { retryAfterMs, ...options }: ErrorOptions & { retryAfterMs?: number } = {},
  ) {
    const entry: ErrorEntry = errors[key]
    const body: ErrorBody = {
      error: entry.error,
      ...(entry.code !== undefined && { code: entry.code }),
      ...fields,
    }
    super(body.error, options)
    this.key = key
    this.entry = entry
    this.body = body
    this.retryAfter = retryAfterMs === undefined ? entry.retryAfter : Math.ceil(retryAfterMs / 1_000)
  }

  get status(): number {
    return this.entry.status
  }
}

/** 400 with a text that names the field. */
export function invalid(error: string): ServiceError {
  return new ServiceError('invalidRequest', { error })
}

/** The value that was read, or a 400 with the reader's text. */
export function required<T>(parsed: Parsed<T>): T {
  if (!parsed.ok) throw invalid(parsed.error)
  return parsed.value
}

/** 403 of a caller without the role (docs/reference/api.md, "Roles"). */
export function roleMissing(action: Action): ServiceError {
  return new ServiceError('roleMissing', { message: requiredRoles(action) })
}

/** 429 (docs/reference/errors.md, "Errors"): `credits` is the balance, `required` what the request costs. */
export function insufficientCredits(credits: number, required: number): ServiceError {
  return new ServiceError('insufficientCredits', {
    credits,
    required,
    message: `The request needs ${required} credits, the balance is ${credits}`,
  })
}
