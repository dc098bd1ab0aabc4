import type { Schema } from '../schemas/shape.ts'

/**
 * The schemas of rows and of the registry as components of the OpenAPI document. Each object is a component by its
 * title, and so is an enumeration that has one: generators make a type of each, under that name. Requests are closed.
 * Answers are open there, for a later version may answer more; tests judge them as closed (`test/support/judged.ts`).
 */
export class Components {
  readonly #schemas = new Map<string, Schema>()

  /** A reference to the component of an answer. Throws for an object without a title, or a second one of its title. */
  answer(schema: Schema): Schema {
    return this.#published(schema, 'answer')
  }

  /** A reference to the component of a body, which is called `name` if it has no title of its own. Throws as `answer`. */
  request(schema: Schema, name: string): Schema {
    const { title = name } = schema
    return this.#component({ ...schema, title }, 'request')
  }

  /** All of them by name, in the order of names. */
  all(): Schema {
    const byName = [...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1))
    return Object.fromEntries(byName)
  }

  #published(schema: Schema, use: Use): Schema {
    const { nullable, ...rest } = schema
    if (nullable === true) return this.#orNull(rest, use)
    if (rest.type === 'object') return this.#component(rest, use)
    return rest.title === undefined ? this.#body(rest, use) : this.#enumeration(rest, use)
  }

  /** A reference can have no `nullable` beside it, and an enumeration with null in it loses the null in some generators. */
  #orNull(schema: Schema, use: Use): Schema {
    const published = this.#published(schema, use)
    const isPlain = published.type !== undefined && published.enum === undefined
    if (isPlain) return { ...published, nullable: true }
    return { description: schema.description, anyOf: [published, NULL] }
  }

  /** The component is the same everywhere, as the first place tells it; another place tells its own use of it. */
  #enumeration(schema: Schema, use: Use): Schema {
    const { default: _default, ...values } = schema
    const { description = values.description } = this.#schemas.get(String(values.title)) ?? {}
    const reference = this.#component({ ...values, description }, use)
    const text = described(schema, use)
    return text === description ? reference : { description: text, allOf: [reference] }
  }

  #component(schema: Schema, use: Use): Schema {
    const { title } = schema
    if (typeof title !== 'string') throw new Error(`"${schema.description}" needs a title`)
    const body = this.#body(schema, use)
    const known = this.#schemas.get(title)
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(body)) {
      throw new Error(`two schemas have the title ${title}`)
    }
    this.#schemas.set(title, body)
    return { $ref: `#/components/schemas/${title}` }
  }

  /** What stands in the component, or in the place of what has none. */
  #body(schema: Schema, use: Use): Schema {
    const members = Object.entries(schema).filter(([name, member]) => isPublished(name, member, use))
    return Object.fromEntries(
      members.map(([name, member]) => [name, this.#member(schema, name, member, use)]),
    )
  }

  #member(schema: Schema, name: string, member: unknown, use: Use): unknown {
    if (name === 'description') return described(schema, use)
    if (name === 'items' || (name === 'additionalProperties' && typeof member === 'object')) {
      return this.#published(member as Schema, use)
    }
    if (name !== 'properties') return member
    const properties = Object.entries(member as Record<string, Schema>)
    return Object.fromEntries(properties.map(([key, value]) => [key, this.#published(value, use)]))
  }
}

/** `type: "null"` of later versions, as OpenAPI 3.0.3 has it. */
const NULL: Schema = { type: 'string', nullable: true, enum: [null] }

type Use = 'answer' | 'request'

/** OpenAPI 3.0.3 wants at least one name in a list of required ones. */
function isPublished(name: string, member: unknown, use: Use): boolean {
  if (name === 'title' || name === 'storable' || name === 'default') return false
  if (name === 'required') return (member as readonly unknown[]).length > 0
  return use === 'request' || name !== 'additionalProperties' || member !== false
}

/**
 * The keyword `default` would mislead generators: one takes such a member for required, another sends the default of
 * its day for ever. So the text tells it.
 */
function described({ description, default: initial }: Schema, use: Use): unknown {
  const isTold = use === 'request' && initial !== undefined && typeof initial !== 'object'
  return isTold ? `${description} Default: ${JSON.stringify(initial)}.` : description
}
