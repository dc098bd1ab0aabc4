/** What the admin API says to a resource's configuration: both must draw the same lines. */
import { parseBufferCreate } from '../../../internal/domain/buffer.ts'
import type { Json, Path } from './fields.ts'

/** Fields that the admin API does not know. */
const OWN = [
  ...['credentialsRef', 'deletionPolicy', 'adoptionPolicy', 'headersFrom'],
  ...['secretKeyRef', 'previousSecretKeyRef'],
]

export function isOfTheService(path: Path): boolean {
  return path[0] === 'spec' && path.length > 1 && !path.some((step) => OWN.includes(step))
}

/** Why the service refuses what `resource` asks for, or null. */
export function refusalOf(resource: Json): string | null {
  const parsed = parseBufferCreate(creationOf(resource))
  return parsed.ok ? null : parsed.error
}

/** The body that creates what `resource` asks for, with some text for every secret. */
export function creationOf({ metadata, spec }: Json): Json {
  const { displayName, delivery, sourceVerification, ...rest } = without(spec as Json, OWN)
  const { name } = metadata as Json
  return {
    bufferId: name,
    name: displayName ?? name,
    ...rest,
    ...(delivery !== undefined && { delivery: deliveryOf(delivery) }),
    ...(sourceVerification !== undefined && {
      sourceVerification: withSecret(
        withSecret(sourceVerification, 'signingSecret'),
        'previousSecret',
        'previousSecretKeyRef',
      ),
    }),
  }
}

function deliveryOf(delivery: unknown): unknown {
  if (!isObject(delivery)) return delivery
  const { headersFrom, signing, ...rest } = delivery
  const fromSecrets = ((headersFrom ?? []) as Json[]).map(({ name }) => [name, 'text'])
  const headers = isObject(rest.headers ?? {})
    ? { ...(rest.headers as Json), ...Object.fromEntries(fromSecrets) }
    : rest.headers
  return {
    ...rest,
    ...((rest.headers !== undefined || fromSecrets.length > 0) && { headers }),
    ...(signing !== undefined && { signing: withSecret(signing, 'secret') }),
  }
}

/** A text that is base64 too: what every scheme can use. */
function withSecret(object: unknown, secret: string, ref = 'secretKeyRef'): unknown {
  if (!isObject(object) || object[ref] === undefined) return object
  return { ...without(object, [ref]), [secret]: 'text' }
}

function without(object: Json, names: readonly string[]): Json {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)))
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
