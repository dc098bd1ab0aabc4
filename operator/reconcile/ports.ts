/** What the reconciler needs of the outside: the admin API, the API server, Secrets, a log. */
import type { Buffer } from '../../internal/domain/model.ts'
import type { BufferResource, BufferStatus, ResourceMetadata } from '../resource.ts'

/**
 * How the admin API refused or failed (docs/reference/errors.md, "Errors"). `unavailable`: 5xx, no answer, or one
 * that the admin API would not give; repeating may help, as for `throttled`. `suspended`: of the account, which reads
 * only. `full`: the account has as many buffers or ids as it may.
 */
export type AdminErrorKind =
  | 'invalid'
  | 'unauthorized'
  | 'forbidden'
  | 'suspended'
  | 'absent'
  | 'exists'
  | 'full'
  | 'throttled'
  | 'unavailable'

export class AdminError extends Error {
  override readonly name = 'AdminError'
  readonly kind: AdminErrorKind
  /** Of a Retry-After header, ms. */
  readonly retryAfterMs: number | undefined

  constructor(kind: AdminErrorKind, message: string, options: ErrorOptions & { retryAfterMs?: number } = {}) {
    super(message, options)
    this.kind = kind
    this.retryAfterMs = options.retryAfterMs
  }
}

/** Body of `POST /v1/admin/buffers` or a JSON merge patch of `PATCH /v1/admin/buffers/{bufferId}`. */
export type JsonBody = Readonly<Record<string, unknown>>

/** Whom an API key stands for. `projects`: those that it is limited to; null: all of the account. */
export interface KeyHolder {
  readonly customerId: string
  readonly projects: readonly string[] | null
}

/** Buffers of the admin API. `key`: an API key. Rejects with AdminError, or with the signal's reason when that is aborted. */
export interface AdminBuffers {
  /** undefined: there is none that this key reaches. `mayShare`: the answer may be some seconds old. */
  read(key: string, bufferId: string, signal: AbortSignal, mayShare?: boolean): Promise<Buffer | undefined>
  create(key: string, body: JsonBody, signal: AbortSignal): Promise<Buffer>
  update(key: string, bufferId: string, patch: JsonBody, signal: AbortSignal): Promise<Buffer>
  /** Whether there was one that this key reaches. */
  remove(key: string, bufferId: string, signal: AbortSignal): Promise<boolean>
  holder(key: string, signal: AbortSignal): Promise<KeyHolder>
}

/** What passes tell of the service. Neither throws. */
export interface ServiceSigns {
  /** How often it has come back from being away. */
  readonly returns: number
  answered(): void
  /** The pass of this key, `namespace/name`, got no answer. */
  missed(key: string): void
  /** There is no such resource any more. */
  forget(key: string): void
}

/** How a buffer stands, as the service tells without being asked for this one. Times are Unix epoch ms. */
export interface BufferState {
  readonly bufferId: string
  readonly enabled: boolean
  readonly pausedAt?: number
  readonly updatedAt: number
  readonly consecutiveDlqCount: number
  /** Counted up to 100. */
  readonly deadLetters: number
  readonly lastDeadLetterAt?: number
}

export interface StatesAnswer {
  readonly tag: string
  readonly buffers: readonly BufferState[]
}

/** Hears how the buffers of the API keys in use stand. */
export interface StateFollower {
  /** The resource, `namespace/name`, is reconciled by this key from now on; undefined: by none. */
  use(resource: string, apiKey: string | undefined): void
}

/** Of a write to the API server: the resource changed since it was read, or is another one. Nothing was written. */
export class StaleError extends Error {
  override readonly name = 'StaleError'
}

/** Writes to the API server. Each resolves with the resource as it then is, and rejects with StaleError. */
export interface BufferWriter {
  setFinalizers(resource: BufferResource, finalizers: readonly string[]): Promise<BufferResource>
  /** The whole status; a field that it lacks is removed. */
  applyStatus(resource: BufferResource, status: BufferStatus): Promise<BufferResource>
}

/** Reads Secrets of the API server. */
export interface SecretValues {
  /**
   * As new as `known`, or newer, with the values of `keys` that it has, and perhaps further ones. undefined: it is gone.
   * Rejects where it cannot be read, and with the signal's reason when that is aborted.
   */
  read(
    known: SecretMetadata,
    keys: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<SecretResource | undefined>
}

/** Tells whoever looks at a resource what happened to it. Never rejects, never waits. */
export interface EventSink {
  record(resource: BufferResource, type: 'Normal' | 'Warning', reason: string, note: string): void
}

/** What is known of a Secret without its values. */
export interface SecretMetadata {
  readonly metadata: Pick<ResourceMetadata, 'name' | 'namespace' | 'uid' | 'resourceVersion'>
}

/** The part of a Secret that is read. Values are base64. */
export interface SecretResource extends SecretMetadata {
  readonly data?: Readonly<Record<string, string>>
}

export interface ReconcileLog {
  info(fields: Record<string, unknown>, message: string): void
}
