import { bufferPatchSchema } from '../../domain/buffer-patch-schema.ts'
import { bufferCreateSchema, bufferSchema as domainSchema } from '../../domain/buffer-schema.ts'
import type { Schema as DomainSchema } from '../../domain/schema-parts.ts'
import type { Schema } from './shape.ts'

/** docs/reference/buffers.md, "Fields": derived from the one schema of the domain. */

export const bufferSchema: Schema = stored(domainSchema)

/** Body of a creation: `BufferInput`, `BatchInput` and so on. */
export const bufferInputSchema = renamed(bufferCreateSchema as unknown as Schema, 'Input')

/** Body of a merge patch: `BufferPatch`, `BatchPatch` and so on. */
export const bufferMergePatchSchema = renamed(bufferPatchSchema as unknown as Schema, 'Patch')

/** What has a default is always there in a stored buffer. */
function stored(schema: DomainSchema): Schema {
  const { properties, required = [], default: _default, ...rest } = schema
  if (properties === undefined) return rest as Schema
  const always = Object.keys(properties).filter(
    (name) => required.includes(name) || properties[name]?.default !== undefined,
  )
  const members = Object.entries(properties).map(([name, member]) => [name, stored(member)])
  return {
    ...rest,
    properties: Object.fromEntries(members),
    ...(always.length > 0 && { required: always }),
  }
}

/** A request has other members than the answer of the same name. Its objects are other components therefore. */
function renamed(schema: Schema, suffix: string): Schema {
  const { title, properties } = schema
  if (properties === undefined) return schema
  const members = Object.entries(properties as Record<string, Schema>)
  return {
    ...schema,
    title: `${title}${suffix}`,
    properties: Object.fromEntries(members.map(([name, member]) => [name, renamed(member, suffix)])),
  }
}
