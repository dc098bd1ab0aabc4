/**
 * Reading of buffer configurations: creation, PATCH and clone (specification, "Buffers"; design, section 9).
 * Whatever comes out is complete (every default filled in) and obeys the schema and every rule beyond it.
 */
import { Ajv } from 'ajv'
import { brokenRule } from './buffer-rules.ts'
import { bufferConfigSchema, bufferCreateSchema, type Schema } from './buffer-schema.ts'
import { restoreSecrets } from './buffer-secrets.ts'
import { copyJson, isJsonObject, type JsonObject, mergePatch } from './merge-patch.ts'
import type { Buffer, BufferConfig } from './model.ts'
import { accept, type Parsed, refuse } from './parsed.ts'
import { describeFault, shorten } from './schema-fault.ts'

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
  formats: { uri: true },
})
const validateCreate = ajv.compile(bufferCreateSchema)
const validateConfig = ajv.compile(bufferConfigSchema)

const readOnly = [
  'bufferId',
  'projectId',
  'customerId',
  'consecutiveDlqCount',
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
  if (!validateCreate(copy)) return refuse(describeFault(validateCreate.errors?.[0]))
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
  const { changes, error } = withoutReadOnly(stored, patch)
  if (error) return refuse(error)
  const unknown = unknownField(bufferConfigSchema, changes, '')
  if (unknown) return refuse(unknown)
  const config = configOf(stored)
  const merged = mergePatch(config, changes)
  if (!validateConfig(merged)) return refuse(describeFault(validateConfig.errors?.[0]))
  const checked = checkConfig(merged as unknown as BufferConfig, config, checkDestination)
  if (!checked.ok) return checked
  return accept({ config: checked.value, reenabled: !stored.enabled && checked.value.enabled })
}

/** Body of `POST /v1/admin/buffers/{bufferId}/clone`, optional `{name}`: the configuration of the clone. */
export function parseBufferClone(stored: Buffer, body: unknown): Parsed<BufferConfig> {
  const changes = body ?? {}
  if (!isJsonObject(changes)) return refuse('body must be a JSON object')
  const stranger = Object.keys(changes).find((name) => name !== 'name')
  if (stranger !== undefined) return refuse(`${shorten(stranger)} is not a known field`)
  const clone = {
    ...configOf(stored),
    name: changes.name === undefined ? `${stored.name} (Copy)` : changes.name,
  }
  return validateConfig(clone)
    ? accept(clone as unknown as BufferConfig)
    : refuse(describeFault(validateConfig.errors?.[0]))
}

/** The configuration part of a stored buffer, as a copy. */
export function configOf(buffer: Buffer): BufferConfig {
  const known = Object.entries(buffer).filter(([name]) =>
    Object.hasOwn(bufferConfigSchema.properties ?? {}, name),
  )
  return copyJson(Object.fromEntries(known)) as BufferConfig
}

/** A destination that did not change is not judged again: a stricter guard must not block other changes. */
function checkConfig(
  config: BufferConfig,
  stored: BufferConfig | undefined,
  checkDestination: CheckDestination,
): Parsed<BufferConfig> {
  const restored = restoreSecrets(config, stored)
  if (!restored.ok) return restored
  const broken = brokenRule(restored.value)
  if (broken) return refuse(broken)
  const { url } = restored.value.delivery
  const blocked = url === stored?.delivery.url ? null : checkDestination(url)
  return blocked === null ? restored : refuse(`delivery.url is not allowed: ${blocked}`)
}

function withoutReadOnly(stored: Buffer, patch: JsonObject): { changes: JsonObject; error: string | null } {
  const changes = new Map(Object.entries(patch))
  let error: string | null = null
  for (const name of readOnly) {
    if (changes.has(name) && changes.get(name) !== stored[name]) error ??= `${name} cannot be changed`
    changes.delete(name)
  }
  return { changes: Object.fromEntries(changes), error }
}

/** A misspelt member set to `null` vanishes in the merge, so names are checked on the patch itself. */
function unknownField(schema: Schema, patch: unknown, path: string): string | null {
  if (!schema.properties || !isJsonObject(patch)) return null
  for (const [name, member] of Object.entries(patch)) {
    const field = path === '' ? name : `${path}.${name}`
    if (!Object.hasOwn(schema.properties, name)) return `${shorten(field)} is not a known field`
    const found = unknownField(schema.properties[name] as Schema, member, field)
    if (found) return found
  }
  return null
}
