import { type Schema as DomainSchema, bufferSchema as domainSchema } from '../../domain/buffer-schema.ts'
import type { Schema } from './shape.ts'

/** docs/reference/buffers.md, "Fields": derived from the one schema of the domain. */

export const bufferSchema: Schema = stored(domainSchema)

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
