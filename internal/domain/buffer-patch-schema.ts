/**
 * The body of a PATCH of a buffer, derived from the one schema of its configuration (docs/architecture/protocol.md,
 * "One schema"): a JSON merge patch (RFC 7396), so nothing is required, nothing has a default, and null removes what
 * is not required. What cannot be changed may be sent back as it was read.
 */
import { bufferConfigSchema, bufferSchema } from './buffer-schema.ts'
import type { Schema } from './schema-parts.ts'

/** `nullable`: null is possible beside what the rest says. */
export interface PatchSchema extends Omit<Schema, 'properties'> {
  readonly properties?: Readonly<Record<string, PatchSchema>>
  readonly nullable?: true
}

export const bufferPatchSchema: PatchSchema = {
  ...patchOf(bufferConfigSchema),
  description: 'Changes to a buffer, as a JSON merge patch (RFC 7396).',
  properties: { ...patchOf(bufferConfigSchema).properties, ...readOnlyFields() },
}

function patchOf(schema: Schema): PatchSchema {
  const { properties, required = [], default: _default, ...rest } = schema
  if (properties === undefined) return rest
  const members = Object.entries(properties).map(([name, member]) => {
    const patch = patchOf(member)
    return [name, required.includes(name) ? patch : removable(patch)]
  })
  return { ...rest, properties: Object.fromEntries(members) }
}

function removable(schema: PatchSchema): PatchSchema {
  return { ...schema, nullable: true }
}

function readOnlyFields(): Record<string, PatchSchema> {
  const changeable = Object.keys(bufferConfigSchema.properties ?? {})
  const rest = Object.entries(bufferSchema.properties ?? {}).filter(([name]) => !changeable.includes(name))
  return Object.fromEntries(
    rest.map(([name, { type }]) => [
      name,
      { type, description: 'Cannot be changed; accepted as it was read.' },
    ]),
  )
}
