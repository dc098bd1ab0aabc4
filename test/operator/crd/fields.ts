/** The fields of the Buffer resource, read from its definition, and values to set at their paths. */
import { bufferDefinition } from '../../../operator/crd/definition.ts'
import type { StructuralSchema } from '../../../operator/crd/structural.ts'
import { API_VERSION, KIND } from '../../../operator/resource.ts'

export type Json = Record<string, unknown>

/** `[]` is the one entry of a list, `*` the one member of a map. */
export type Path = readonly string[]

export interface Field {
  readonly path: Path
  readonly schema: StructuralSchema
  /** Its parent cannot be without it. */
  readonly required: boolean
}

export const resourceSchema: StructuralSchema = bufferDefinition().spec.versions[0]!.schema.openAPIV3Schema

/** Every field of `part`, itself first. */
export function fieldsOf(part: 'spec' | 'status'): Field[] {
  return [...below([part], resourceSchema.properties![part]!, part === 'spec')]
}

function* below(path: Path, schema: StructuralSchema, required: boolean): Generator<Field> {
  yield { path, schema, required }
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    yield* below([...path, name], member, schema.required?.includes(name) ?? false)
  }
  if (schema.items) yield* below([...path, '[]'], schema.items, false)
  if (schema.additionalProperties) yield* below([...path, '*'], schema.additionalProperties, false)
}

const secretKeyRef = { name: 'secrets', key: 'one' }

/** A resource in which every field of the spec is set, or can be. */
export function fullResource(name = 'judged'): Json {
  return {
    apiVersion: API_VERSION,
    kind: KIND,
    metadata: { name },
    spec: {
      bufferId: 'orders',
      projectId: 'shop',
      displayName: 'Orders',
      enabled: true,
      groupKey: { mode: 'jsonpath', path: '$.data.customer', fallbackHeader: 'X-Customer' },
      delivery: {
        url: 'https://receiver.example/hook',
        headers: { 'X-Tenant': 'one' },
        headersFrom: [{ name: 'Authorization', secretKeyRef }],
        signing: { secretKeyRef },
      },
      messageId: { path: '$.id', header: 'X-Id' },
      sourceVerification: { enabled: true, secretKeyRef, previousSecretKeyRef: secretKeyRef },
      credentialsRef: { name: 'secrets' },
    },
  }
}

/** A status in which every list has its one entry. */
export function fullStatus(): Json {
  return {
    observedGeneration: 1,
    secretVersions: [{ name: 'secrets', resourceVersion: '1' }],
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        observedGeneration: 1,
        lastTransitionTime: '2026-01-02T03:04:05Z',
        reason: 'Synced',
        message: 'in step with the service',
      },
    ],
  }
}

/** A copy of `root` with `value` at `path`; undefined removes what is there. Objects on the way are made. */
export function withValue(root: Json, path: Path, value: unknown): Json {
  const copy = structuredClone(root)
  let node: Json = copy
  for (const step of path.slice(0, -1)) {
    const name = memberOf(node, step)
    node[name] ??= {}
    node = node[name] as Json
  }
  const last = memberOf(node, path.at(-1)!)
  if (value === undefined) delete node[last]
  else node[last] = value
  return copy
}

/** What is at `path`, or undefined. */
export function valueAt(root: unknown, path: Path): unknown {
  return path.reduce((node, step) => (node as Json | undefined)?.[memberOf(node as Json, step)], root)
}

function memberOf(node: Json | undefined, step: string): string {
  if (step === '[]') return '0'
  return step === '*' ? (Object.keys(node ?? {})[0] ?? 'member') : step
}
