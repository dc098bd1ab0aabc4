/**
 * The Buffer resources that take over buffers as they are (docs/guide/kubernetes.md, "Move buffers to GitOps"): applied
 * beside the Secrets that they name, they make the operator write nothing to the service. No value of a secret is in them.
 */
import type { ExportedBuffer, ExportOptions } from './buffer.ts'
import { resourceNames } from './names.ts'
import { checkOptions } from './options.ts'
import { type Reference, type References, referencesOf } from './references.ts'

type Json = Readonly<Record<string, unknown>>

export interface ExportedResource {
  readonly resource: Json
  /** What whoever applies it should know, a line each. */
  readonly notes: readonly string[]
}

/** Taken over as they are. */
const shared = [
  ...['groupKey', 'messageId', 'batch', 'overflow'],
  ...['throughput', 'dlqPauseThreshold', 'requireApiKey', 'analytics'],
] as const

/** By project, then by identifier: the same buffers make the same text. Throws an ExportError. */
export function resourcesOf(buffers: readonly ExportedBuffer[], options: ExportOptions): ExportedResource[] {
  checkOptions(options)
  const names = resourceNames(buffers.map(({ bufferId }) => bufferId))
  const sorted = [...buffers].sort((a, b) => order(a.projectId, b.projectId) || order(a.bufferId, b.bufferId))
  return sorted.map((buffer) => resourceOf(buffer, names.get(buffer.bufferId)!, options))
}

function order(one: string, other: string): number {
  return one < other ? -1 : Number(one > other)
}

function resourceOf(buffer: ExportedBuffer, name: string, options: ExportOptions): ExportedResource {
  const { namespace } = options
  const references = referencesOf(buffer, name, options)
  const resource = {
    apiVersion: 'buffering.penstock.dev/v1alpha1',
    kind: 'Buffer',
    metadata: { name, ...(namespace !== undefined && { namespace }) },
    spec: specOf(buffer, references, options),
  }
  return { resource, notes: [...secretNotes(references), ...stateNotes(buffer)] }
}

function specOf(buffer: ExportedBuffer, references: References, options: ExportOptions): Json {
  const { bufferId, projectId, name, enabled } = buffer
  const rest: Json = { ...buffer }
  const taken = shared.filter((field) => rest[field] !== undefined).map((field) => [field, rest[field]])
  return {
    // Even where it is the name of the resource, which others may put a prefix before.
    bufferId,
    projectId,
    displayName: name,
    // A new resource resumes a buffer that the service has paused, unless it says that it stays so.
    ...(!enabled && { enabled }),
    ...Object.fromEntries(taken),
    delivery: deliveryOf(buffer, references),
    ...(buffer.sourceVerification && { sourceVerification: sourceOf(buffer.sourceVerification, references) }),
    credentialsRef: { name: options.credentialsSecret, key: 'apiKey' },
    adoptionPolicy: 'Adopt',
    deletionPolicy: 'Orphan',
  }
}

function deliveryOf({ delivery }: ExportedBuffer, { plain, headers, signing }: References): Json {
  const { headers: _headers, signing: signature, ...rest } = delivery
  const { secret: _secret, ...open } = signature ?? {}
  return {
    ...rest,
    ...(plain && { headers: plain }),
    ...(headers.length > 0 && {
      headersFrom: headers.map(({ header, ref }) => ({ name: header, secretKeyRef: ref })),
    }),
    ...(signing && { signing: { ...open, secretKeyRef: signing.ref } }),
  }
}

function sourceOf(
  verification: NonNullable<ExportedBuffer['sourceVerification']>,
  { source, previousSource }: References,
): Json {
  const { signingSecret: _secret, previousSecret: _previous, ...rest } = verification
  return {
    ...rest,
    ...(source && { secretKeyRef: source.ref }),
    ...(previousSource && { previousSecretKeyRef: previousSource.ref }),
  }
}

function secretNotes({ signing, source, previousSource, headers }: References): string[] {
  const all = [signing, source, previousSource, ...headers].filter(
    (each): each is Reference => each !== undefined,
  )
  const [first] = all
  if (first === undefined) return []
  const keys = all.map(({ ref, field }) => `  ${ref.key}: ${field}`)
  return [`Make the Secret ${first.ref.name} first, with the values that the buffer has:`, ...keys]
}

function stateNotes({ enabled, pausedReason }: ExportedBuffer): string[] {
  if (enabled) return []
  const who =
    pausedReason === undefined ? 'The buffer is disabled' : `The service paused the buffer (${pausedReason})`
  return [`${who}. To resume it, set enabled to true.`]
}
