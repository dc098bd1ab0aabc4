/** The buffer that a resource asks for, in the words of the admin API, with the values of its Secrets in place. */
import { parseBufferCreate } from '../../internal/domain/buffer.ts'
import { isJsonObject } from '../../internal/domain/merge-patch.ts'
import type { BufferConfig } from '../../internal/domain/model.ts'
import type { BufferResource, BufferSpec, SecretKeyRef } from '../resource.ts'
import { isPaused } from './pause.ts'
import type { JsonBody } from './ports.ts'
import { type FindSecret, headerValue, type SecretProblem, secretValue } from './secret-values.ts'

/** What is managed: `enabled` only where the resource has it. */
export type Wanted = Omit<BufferConfig, 'enabled'> & { enabled?: boolean }

export interface DesiredBuffer {
  readonly ok: true
  readonly bufferId: string
  readonly projectId: string
  /** Complete, defaults filled in. */
  readonly config: Wanted
  /** Secrets of which a line end was left out, each as `<key> of Secret <name>`. */
  readonly lineEnds: readonly string[]
}

export type DesiredBufferProblem = SecretProblem | { ok: false; reason: 'InvalidSpec'; error: string }

export function bufferIdOf({ spec, metadata }: BufferResource): string {
  return spec.bufferId ?? metadata.name
}

/** Never with a value of a Secret in its error. */
export function desiredBufferOf(
  resource: BufferResource,
  find: FindSecret,
): DesiredBuffer | DesiredBufferProblem {
  const values = resolve(resource.spec, find)
  if ('ok' in values) return values
  const parsed = parseBufferCreate(bodyOf(resource, values))
  if (!parsed.ok) return { ok: false, reason: 'InvalidSpec', error: parsed.error }
  const { bufferId, projectId, config } = parsed.value
  const { enabled, ...rest } = config
  const manages = resource.spec.enabled !== undefined || isPaused(resource)
  const managed = manages ? { ...rest, enabled } : rest
  return { ok: true, bufferId, projectId, config: managed, lineEnds: values.lineEnds }
}

/** Body of `POST /v1/admin/buffers`. */
export function creationOf({ bufferId, projectId, config }: DesiredBuffer): JsonBody {
  return { bufferId, projectId, ...config }
}

interface Values {
  readonly signing: string | undefined
  readonly source: string | undefined
  readonly previousSource: string | undefined
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly lineEnds: readonly string[]
}

function resolve({ delivery, sourceVerification }: BufferSpec, find: FindSecret): Values | SecretProblem {
  const problems: SecretProblem[] = []
  const lineEnds: string[] = []
  const read = (ref: SecretKeyRef, take = secretValue): string => {
    const value = take(ref, find)
    if (!value.ok) problems.push(value)
    else if (value.hadLineEnd) lineEnds.push(`${ref.key} of Secret ${ref.name}`)
    return value.ok ? value.value : ''
  }
  const values = {
    signing: delivery.signing && read(delivery.signing.secretKeyRef),
    source: sourceVerification?.secretKeyRef && read(sourceVerification.secretKeyRef),
    previousSource: sourceVerification?.previousSecretKeyRef && read(sourceVerification.previousSecretKeyRef),
    headers: (delivery.headersFrom ?? []).map(
      ({ name, secretKeyRef }) => [name, read(secretKeyRef, headerValue)] as const,
    ),
  }
  return problems[0] ?? { ...values, lineEnds }
}

function bodyOf(resource: BufferResource, values: Values): JsonBody {
  const { spec, metadata } = resource
  const { groupKey, messageId, batch, overflow, throughput, dlqPauseThreshold, analytics } = spec
  const { projectId, requireApiKey } = spec
  return present({
    bufferId: bufferIdOf(resource),
    projectId,
    name: spec.displayName ?? metadata.name,
    enabled: isPaused(resource) ? false : spec.enabled,
    groupKey,
    messageId,
    batch,
    overflow,
    throughput,
    dlqPauseThreshold,
    requireApiKey,
    analytics,
    delivery: deliveryOf(spec, values),
    sourceVerification: sourceVerificationOf(spec, values),
  })
}

function deliveryOf({ delivery }: BufferSpec, values: Values): object {
  const { signing, headersFrom: _from, headers, ...rest } = delivery
  const { secretKeyRef: _ref, ...signature } = signing ?? {}
  const extra = [...Object.entries(headers ?? {}), ...values.headers]
  return present({
    ...rest,
    headers: headers !== undefined || extra.length > 0 ? Object.fromEntries(extra) : undefined,
    signing: signing && { ...signature, secret: values.signing },
  })
}

function sourceVerificationOf({ sourceVerification }: BufferSpec, values: Values): object | undefined {
  if (!isJsonObject(sourceVerification)) return undefined
  const { secretKeyRef: _ref, previousSecretKeyRef: _previous, ...rest } = sourceVerification
  return present({ ...rest, signingSecret: values.source, previousSecret: values.previousSource })
}

function present(members: Record<string, unknown>): JsonBody {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}
