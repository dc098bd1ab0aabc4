/**
 * Reading of buffer configurations: creation, PATCH and clone (docs/reference/api.md, "Buffers").
 * Whatever comes out is complete (every default filled in) and obeys the schema and every rule beyond it.
 */
import { Ajv, type ErrorObject } from 'ajv'
import { brokenRules, credentialNames } from './buffer-rules.ts'
import { bufferConfigSchema, bufferCreateSchema } from './buffer-schema.ts'
import { restoreSecrets } from './buffer-secrets.ts'
import { copyJson, isJsonObject, type JsonObject, mergePatch } from './merge-patch.ts'
import type { Buffer, BufferConfig } from './model.ts'
import { NAME_MAX_LENGTH } from './names.ts'
import { accept, type Parsed, refuse } from './parsed.ts'
import { describeFaults, faultsOf, joinProblems, named, shorten } from './schema-fault.ts'
import type { Schema } from './schema-parts.ts'
import { signatureHeaderOf } from './signatures/schemes.ts'

/** Judges a literal destination; returns why it is not allowed, or null. Injected: it knows the network's rules. */
export type CheckDestination = (url: string) => string | null

export interface NewBuffer {
  bufferId: string
  projectId: string
  /** As the caller gave it; the authenticated customer when undefined. */
  customerId?: string
  config: BufferConfig
}

export interface BufferChange {
  config: BufferConfig
  /** The patch enabled a disabled buffer: `consecutiveDlqCount` goes back to 0. */
  reenabled: boolean
}

const ajv = new Ajv({
  strict: true,
  useDefaults: true,
  verbose: true,
  allErrors: true,
  formats: { uri: true },
})
const validateCreate = ajv.compile(bufferCreateSchema)
const validateConfig = ajv.compile(bufferConfigSchema)

const readOnly = [
  'bufferId',
  'projectId',
  'customerId',
  'consecutiveDlqCount',
  'pausedReason',
  'pausedAt',
  'createdAt',
  'updatedAt',
] as const
const anywhere: CheckDestination = () => null

/** Body of `POST /v1/admin/buffers`. Errors name the field; unknown fields are errors. */
export function parseBufferCreate(
  body: unknown,
  checkDestination: CheckDestination = anywhere,
): Parsed<NewBuffer> {
  const copy = copyJson(body)
  if (!validateCreate(copy)) return refuse(describeFaults(validateCreate.errors))
  const { bufferId, projectId, customerId, ...config } = copy as unknown as NewBuffer & BufferConfig
  const checked = checkConfig(config, undefined, checkDestination)
  if (!checked.ok) return checked
  return accept({
    bufferId,
    projectId,
    ...(customerId !== undefined && { customerId }),
    config: checked.value,
  })
}

/**
 * Body of `PATCH /v1/admin/buffers/{bufferId}` as a JSON merge patch on `stored`: objects merge deeply, `null`
 * removes an optional member, and one that has a default gets it back. Read-only fields may be sent when
 * unchanged. The result is validated as a whole.
 */
export function applyBufferPatch(
  stored: Buffer,
  patch: unknown,
  checkDestination: CheckDestination = anywhere,
): Parsed<BufferChange> {
  if (!isJsonObject(patch)) return refuse('body must be a JSON object')
  const { changes, problems } = withoutReadOnly(stored, patch)
  problems.push(...unknownFields(bufferConfigSchema, changes, ''))
  const config = configOf(stored)
  const merged = mergePatch(config, changes)
  const faults = newFaults(merged, config)
  if (faults.length > 0) problems.push(...faultsOf(faults))
  if (problems.length > 0) return refuse(joinProblems([...new Set(problems)]))
  const checked = checkConfig(merged as unknown as BufferConfig, config, checkDestination)
  if (!checked.ok) return checked
  return accept({ config: checked.value, reenabled: !stored.enabled && checked.value.enabled })
}

/**
 * Body of `POST /v1/admin/buffers/{bufferId}/clone`, optional `{name}`: the configuration of the clone. All of it
 * is copied, `enabled` and secrets too; its destination was judged when it was configured.
 */
export function parseBufferClone(stored: Buffer, body: unknown): Parsed<BufferConfig> {
  const changes = body ?? {}
  if (!isJsonObject(changes)) return refuse('body must be a JSON object')
  const strangers = Object.keys(changes).filter((name) => name !== 'name')
  if (strangers.length > 0) return refuse(joinProblems(strangers.map((name) => unknown(named(name)))))
  const clone = {
    ...configOf(stored),
    name: changes.name === undefined ? cloneName(stored.name) : changes.name,
  }
  const faults = newFaults(clone, stored)
  if (faults.length > 0) return refuse(describeFaults(faults))
  const broken = brokenRules(clone as unknown as BufferConfig)
  return broken.length > 0 ? refuse(joinProblems(broken)) : accept(clone as unknown as BufferConfig)
}

/** A name that would grow too long loses its own end, never the suffix; by characters, so none is cut in two. */
function cloneName(name: string): string {
  const suffix = ' (Copy)'
  return [...name].slice(0, NAME_MAX_LENGTH - suffix.length).join('') + suffix
}

/** The configuration part of a stored buffer, as a copy. */
export function configOf(buffer: Buffer): BufferConfig {
  const known = Object.entries(buffer).filter(([name]) =>
    Object.hasOwn(bufferConfigSchema.properties ?? {}, name),
  )
  return copyJson(Object.fromEntries(known)) as BufferConfig
}

/** Beside `stored`: the form of a text that did not change is not judged again, as with a destination. */
function newFaults(config: unknown, stored: BufferConfig): readonly ErrorObject[] {
  if (validateConfig(config)) return []
  const isNew = ({ keyword, instancePath, data }: ErrorObject) =>
    keyword !== 'pattern' || data !== valueAt(stored, instancePath)
  return (validateConfig.errors ?? []).filter(isNew)
}

function valueAt(config: BufferConfig, pointer: string): unknown {
  let value: unknown = config
  for (const name of pointer.split('/').slice(1)) value = isJsonObject(value) ? value[name] : undefined
  return value
}

/** A destination that did not change is not judged again: a stricter guard must not block other changes. */
function checkConfig(
  config: BufferConfig,
  stored: BufferConfig | undefined,
  checkDestination: CheckDestination,
): Parsed<BufferConfig> {
  const restored = restoreSecrets(withSignatureHeader(config, stored), stored)
  if (!restored.ok) return restored
  const problems = [...brokenRules(restored.value), ...credentialNames(restored.value, stored)]
  const { url } = restored.value.delivery
  // What is no URL at all was told by the rules.
  const blocked = url === stored?.delivery.url || problems.length > 0 ? null : checkDestination(url)
  if (blocked !== null) problems.push(`delivery.url is not allowed: ${blocked}`)
  return problems.length === 0 ? restored : refuse(joinProblems(problems))
}

function withSignatureHeader(config: BufferConfig, stored: BufferConfig | undefined): BufferConfig {
  const { sourceVerification } = config
  if (sourceVerification === undefined) return config
  const signatureHeader = signatureHeaderOf(sourceVerification, stored?.sourceVerification)
  return { ...config, sourceVerification: { ...sourceVerification, signatureHeader } }
}

function withoutReadOnly(stored: Buffer, patch: JsonObject): { changes: JsonObject; problems: string[] } {
  const changes = new Map(Object.entries(patch))
  const problems: string[] = []
  for (const name of readOnly) {
    if (changes.has(name) && changes.get(name) !== stored[name]) problems.push(`${name} cannot be changed`)
    changes.delete(name)
  }
  return { changes: Object.fromEntries(changes), problems }
}

/** A misspelt member set to `null` vanishes in the merge, so names are checked on the patch itself. */
function unknownFields(schema: Schema, patch: unknown, path: string): string[] {
  const { properties } = schema
  if (!properties || !isJsonObject(patch)) return []
  return Object.entries(patch).flatMap(([name, member]) => {
    const field = path === '' ? named(name) : `${path}.${named(name)}`
    if (!Object.hasOwn(properties, name)) return [unknown(field)]
    return unknownFields(properties[name] as Schema, member, field)
  })
}

function unknown(field: string): string {
  return `${shorten(field)} is not a known field`
}
