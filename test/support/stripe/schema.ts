/**
 * Stripe's OpenAPI document, which comes with the Go module of stripe-mock (test/payments/stripe/stripe-mock.sh): what
 * its objects must look like. Objects within objects are judged by themselves, so that no schema holds all of them.
 */

import { readFileSync } from 'node:fs'
import { Ajv, type ValidateFunction } from 'ajv'

type Schema = Record<string, unknown>

export class StripeSchema {
  readonly version: string
  readonly #schemas: Readonly<Record<string, Schema>>
  readonly #byObject = new Map<string, Schema>()
  readonly #deleted = new Map<string, Schema>()
  readonly #ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false, validateSchema: false })
  readonly #compiled = new Map<string, ValidateFunction>()
  /** Names of the document's schemas that `#ajv` has. */
  readonly #added = new Set<string>()

  /** `file`: `spec3.json`. */
  constructor(file: string) {
    const document = JSON.parse(readFileSync(file, 'utf8'))
    this.version = document.info.version
    this.#schemas = document.components.schemas
    for (const schema of Object.values(this.#schemas)) {
      const name = objectName(schema)
      // A deleted object has the name of what it was.
      if (name === undefined) continue
      const byName = (schema.properties as Schema).deleted ? this.#deleted : this.#byObject
      byName.set(name, schema)
    }
  }

  /** One line a fault, with its path; none: the object and all in it are as the document says. */
  faults(value: unknown, path = ''): string[] {
    if (typeof value !== 'object' || value === null) return []
    const inside = Object.entries(value).flatMap(([name, each]) => this.faults(each, `${path}/${name}`))
    const name = (value as Schema).object
    if (typeof name !== 'string' || name === 'list') return inside
    const validate = this.#validator(name, 'deleted' in value)
    if (validate === undefined) return [`${path}: no object of Stripe is a ${name}`, ...inside]
    const valid = validate(value)
    const own = valid ? [] : (validate.errors ?? []).map((error) => describe(`${path}(${name})`, error))
    return [...own, ...inside]
  }

  #validator(object: string, isDeleted: boolean): ValidateFunction | undefined {
    const name = isDeleted ? `deleted ${object}` : object
    const known = this.#compiled.get(name)
    const schema = (isDeleted ? this.#deleted : this.#byObject).get(object)
    if (known !== undefined || schema === undefined) return known
    const made = this.#ajv.compile(this.#plain(schema, true))
    this.#compiled.set(name, made)
    return made
  }

  /** JSON Schema of an OpenAPI schema: null where it may be, no fields that it does not have, other objects cut off. */
  #plain(schema: Schema, isRoot = false): Schema {
    const { nullable, $ref, ...rest } = schema
    const plain =
      typeof $ref === 'string' ? this.#reference($ref.split('/').at(-1)!) : this.#own(rest, isRoot)
    return nullable === true ? { anyOf: [{ type: 'null' }, plain] } : plain
  }

  /**
   * Compiled once, however many schemas name it. With a copy in each place, one object of Stripe took seconds to compile,
   * and no answer came within the time that the adapter gives an operation.
   */
  #reference(name: string): Schema {
    if (!this.#added.has(name)) {
      // First, since it may name itself.
      this.#added.add(name)
      this.#ajv.addSchema(this.#plain(this.#schemas[name]!), name)
    }
    return { $ref: name }
  }

  #own(schema: Schema, isRoot: boolean): Schema {
    if (!isRoot && isWhole(schema)) return { type: 'object', required: ['id', 'object'] }
    const plain: Schema = {}
    for (const keyword of ['type', 'enum', 'required', 'maxLength', 'minimum']) {
      if (keyword in schema) plain[keyword] = schema[keyword]
    }
    for (const keyword of ['anyOf', 'oneOf', 'allOf']) {
      const inner = schema[keyword] as Schema[] | undefined
      if (inner) plain[keyword === 'oneOf' ? 'anyOf' : keyword] = inner.map((each) => this.#plain(each))
    }
    if (schema.items) plain.items = this.#plain(schema.items as Schema)
    if (schema.properties) {
      const properties = Object.entries(schema.properties as Record<string, Schema>)
      plain.properties = Object.fromEntries(properties.map(([key, each]) => [key, this.#plain(each)]))
      plain.additionalProperties = false
    }
    const extra = schema.additionalProperties
    if (typeof extra === 'object') plain.additionalProperties = this.#plain(extra as Schema)
    return plain
  }
}

function describe(path: string, error: { instancePath: string; message?: string; params: object }): string {
  return `${path}${error.instancePath} ${error.message} ${JSON.stringify(error.params)}`
}

/** The value of its `object`, where it can have one only. */
function objectName({ properties }: Schema): string | undefined {
  const { object } = (properties ?? {}) as { object?: { enum?: string[] } }
  return object?.enum?.length === 1 && object.enum[0] !== 'list' ? object.enum[0] : undefined
}

/** An object with an id: it is judged where it stands. */
function isWhole(schema: Schema): boolean {
  return objectName(schema) !== undefined && 'id' in (schema.properties as Schema)
}
