/**
 * The Buffer resource as the API server stores it: `buffers.buffering.penstock.dev`, version v1alpha1. Its
 * definition is made from the same schema as the admin API's (`crd/`), so what is read here has passed that
 * schema: defaults are filled in, bounds are kept. Times are RFC 3339 texts.
 */
import type {
  BufferConfig,
  DeliveryConfig,
  PauseReason,
  SigningConfig,
  SourceVerification,
} from '../internal/domain/model.ts'

export const GROUP = 'buffering.penstock.dev'
export const VERSION = 'v1alpha1'
export const API_VERSION = `${GROUP}/${VERSION}`
export const KIND = 'Buffer'
export const LIST_KIND = 'BufferList'
export const PLURAL = 'buffers'

/** Holds a deleted resource back until the admin API has let go of its buffer. */
export const FINALIZER = `${GROUP}/finalizer`
/** Any new value of it resumes a buffer that was paused automatically. */
export const RESUME_ANNOTATION = `${GROUP}/resume`
/** Any new value of it has the buffer compared with its resource at once. */
export const RECONCILE_ANNOTATION = `${GROUP}/reconcile`
/** While it is `true` the buffer is disabled, whatever `enabled` in the spec says. */
export const PAUSE_ANNOTATION = `${GROUP}/pause`
/** While it is `true` the operator leaves the buffer as it is. */
export const UNMANAGED_ANNOTATION = `${GROUP}/unmanaged`
/** Those that ask for a pass when they change. */
export const ANNOTATIONS = [
  RESUME_ANNOTATION,
  RECONCILE_ANNOTATION,
  PAUSE_ANNOTATION,
  UNMANAGED_ANNOTATION,
] as const
/** Owner of the fields that the operator applies. */
export const FIELD_MANAGER = 'penstock-operator'
/** Key within the Secret of `credentialsRef` unless it names another. */
export const DEFAULT_CREDENTIALS_KEY = 'apiKey'

/** A key within a Secret of the resource's own namespace. */
export interface SecretKeyRef {
  readonly name: string
  readonly key: string
}

export interface HeaderFrom {
  /** Name of the header; no two entries have the same one. */
  readonly name: string
  readonly secretKeyRef: SecretKeyRef
}

export type DeletionPolicy = 'Delete' | 'Orphan'
export type AdoptionPolicy = 'Never' | 'Adopt'

/** Secrets are named, never written into the resource. */
export type DeliverySpec = Readonly<Omit<DeliveryConfig, 'signing'>> & {
  readonly signing?: Readonly<Omit<SigningConfig, 'secret'>> & { readonly secretKeyRef: SecretKeyRef }
  /** At most 50; their values come from Secrets. */
  readonly headersFrom?: readonly HeaderFrom[]
}

export type SourceVerificationSpec = Readonly<
  Omit<SourceVerification, 'signingSecret' | 'previousSecret'>
> & {
  readonly secretKeyRef?: SecretKeyRef
  readonly previousSecretKeyRef?: SecretKeyRef
}

type Shared =
  | 'groupKey'
  | 'messageId'
  | 'batch'
  | 'overflow'
  | 'throughput'
  | 'dlqPauseThreshold'
  | 'requireApiKey'
  | 'analytics'

/** What the user wants. */
export interface BufferSpec extends Readonly<Pick<BufferConfig, Shared>> {
  /** Immutable; `metadata.name` when unset. */
  readonly bufferId?: string
  /** Immutable. */
  readonly projectId: string
  /** The buffer's `name`; `metadata.name` when unset. */
  readonly displayName?: string
  /** Unset: whether the buffer is enabled is not the operator's business. */
  readonly enabled?: boolean
  readonly delivery: DeliverySpec
  readonly sourceVerification: SourceVerificationSpec
  /** The Secret with the API key by which the operator configures this buffer. */
  readonly credentialsRef: SecretKeyRef
  readonly deletionPolicy: DeletionPolicy
  readonly adoptionPolicy: AdoptionPolicy
}

export type ConditionType = 'Ready' | 'Reconciling' | 'Stalled' | 'Paused'

export interface Condition {
  readonly type: ConditionType
  readonly status: 'True' | 'False' | 'Unknown'
  readonly observedGeneration: number
  /** When `status` last changed. */
  readonly lastTransitionTime: string
  /** CamelCase, for programs. */
  readonly reason: string
  /** For people, at most 32,768 characters; never a secret. */
  readonly message: string
}

/** What a Secret was when its values were last written to the service. */
export interface SecretVersion {
  readonly name: string
  readonly resourceVersion: string
}

/** What the operator saw and did; written by it alone. */
export interface BufferStatus {
  /** The generation that the rest speaks of. */
  readonly observedGeneration?: number
  /** The buffer that this resource stands for; also written, as an intent, before it is created. */
  readonly bufferId?: string
  /** The account at the service that the buffer belongs to. */
  readonly customerId?: string
  /** Generation at which the creation of `bufferId` was decided; its presence makes a 409 our own success. */
  readonly intentGeneration?: number
  /** Path of the ingest endpoint, `/v1/ingest/<projectId>/<bufferId>`. */
  readonly ingestPath?: string
  readonly enabled?: boolean
  /** Of `delivery.url`, with its port where the URL has one. */
  readonly host?: string
  /** Why the service disabled the buffer by itself. */
  readonly pausedReason?: PauseReason
  readonly consecutiveDlqCount?: number
  /** Counted up to 100, as of the last minute. */
  readonly deadLetters?: number
  readonly lastDeadLetterTime?: string
  readonly secretVersions?: readonly SecretVersion[]
  /** The value of the resume annotation that was last acted on, its first 256 characters. */
  readonly lastHandledResume?: string
  /** The same of the reconcile annotation. */
  readonly lastHandledReconcile?: string
  /** When the service's configuration was last changed by the operator. */
  readonly lastSyncTime?: string
  readonly conditions?: readonly Condition[]
}

/** The part of Kubernetes' metadata that is read here. */
export interface ResourceMetadata {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly resourceVersion: string
  readonly generation: number
  readonly creationTimestamp: string
  readonly deletionTimestamp?: string
  readonly finalizers?: readonly string[]
  readonly annotations?: Readonly<Record<string, string>>
}

export interface BufferResource {
  readonly apiVersion: typeof API_VERSION
  readonly kind: typeof KIND
  readonly metadata: ResourceMetadata
  readonly spec: BufferSpec
  readonly status?: BufferStatus
}
