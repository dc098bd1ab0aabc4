/**
 * Building blocks of response schemas: closed objects whose members are all there unless named as optional, and
 * `nullable` where null is possible. `openapi/components.ts` makes the components of the OpenAPI document of them.
 */

/**
 * A JSON Schema (draft 7 subset that OpenAPI 3.0.3 shares). The `title` of an object is the name of its component, and
 * so the name of its type in a generated client. That of an enumeration is optional.
 */
export type Schema = Readonly<Record<string, unknown>>

/** An object of exactly these members; all of them are required but the `optional` ones. `title`: its component. */
export function closed(
  title: string,
  description: string,
  properties: Readonly<Record<string, Schema>>,
  optional: readonly string[] = [],
): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name))
  return {
    title,
    type: 'object',
    description,
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  }
}

export function text(description: string, more: Schema = {}): Schema {
  return { type: 'string', description, ...more }
}

/** `title`: the component that it shares with every other place of the same title. */
export function oneOf(description: string, values: readonly string[], title?: string): Schema {
  return { ...(title !== undefined && { title }), type: 'string', description, enum: values }
}

export function flag(description: string): Schema {
  return { type: 'boolean', description }
}

export function integer(description: string, more: Schema = {}): Schema {
  return { type: 'integer', description, ...more }
}

/** An integer of 0 or more. */
export function count(description: string): Schema {
  return integer(description, { minimum: 0 })
}

export function number(description: string, more: Schema = {}): Schema {
  return { type: 'number', description, ...more }
}

/** Unix epoch milliseconds. */
export function instant(what: string): Schema {
  return integer(`${what}, Unix epoch milliseconds.`, { minimum: 0 })
}

/** ISO 8601, UTC. */
export function isoInstant(what: string): Schema {
  return text(`${what}, ISO 8601.`, { format: 'date-time' })
}

export function list(description: string, items: Schema): Schema {
  return { type: 'array', description, items }
}

/** An object of any names, whose members are all of one kind. */
export function map(title: string, description: string, members: Schema): Schema {
  return { title, type: 'object', description, additionalProperties: members }
}

export function orNull(schema: Schema): Schema {
  return { ...schema, nullable: true }
}

/** A schema of the registry, by its name. */
export function named(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` }
}
