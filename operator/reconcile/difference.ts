/**
 * The PATCH that makes a stored buffer what is wanted (docs/reference/api.md, "Buffers"; JSON merge patch): each
 * field that differs as a whole, its members that are not wanted as null. Members that this program's schema does not
 * know are a newer service's, and left alone: two versions must not write against each other for ever.
 */
import { isDeepStrictEqual } from 'node:util'
import { bufferConfigSchema } from '../../internal/domain/buffer-schema.ts'
import { isJsonObject } from '../../internal/domain/merge-patch.ts'
import type { Buffer } from '../../internal/domain/model.ts'
import type { Schema } from '../../internal/domain/schema-parts.ts'
import type { Wanted } from './desired-buffer.ts'
import type { JsonBody } from './ports.ts'

/** undefined: nothing differs. `enabled` counts only where it is wanted. */
export function differenceOf(wanted: Wanted, stored: Buffer): JsonBody | undefined {
  const fields = Object.entries(bufferConfigSchema.properties ?? {}).filter(
    ([name]) => name !== 'enabled' || wanted.enabled !== undefined,
  )
  const changes = fields.flatMap(([name, schema]) => {
    const want = memberOf(wanted, name)
    const have = known(schema, memberOf(stored, name))
    return isDeepStrictEqual(want, have) ? [] : [[name, replacement(want, have)]]
  })
  return changes.length === 0 ? undefined : Object.fromEntries(changes)
}

/** Names of the changed fields, for people: values may be secrets. */
export function changedFields(patch: JsonBody): string {
  return Object.keys(patch).sort().join(', ')
}

function memberOf(object: object, name: string): unknown {
  return Object.hasOwn(object, name) ? (object as Record<string, unknown>)[name] : undefined
}

function replacement(want: unknown, have: unknown): unknown {
  if (want === undefined) return null
  if (!isJsonObject(want) || !isJsonObject(have)) return want
  const removed = Object.keys(have).filter((name) => !Object.hasOwn(want, name))
  const kept = Object.entries(want).map(([name, value]) => [name, replacement(value, memberOf(have, name))])
  return Object.fromEntries([...kept, ...removed.map((name) => [name, null])])
}

function known(schema: Schema, value: unknown): unknown {
  const { properties } = schema
  if (properties === undefined || !isJsonObject(value)) return value
  const members = Object.entries(value).filter(([name]) => Object.hasOwn(properties, name))
  return Object.fromEntries(members.map(([name, member]) => [name, known(properties[name]!, member)]))
}
