/** A body of the admin API (api/vectors/buffers.json) as a resource, and fields of the one as those of the other. */
import { API_VERSION, KIND } from '../../../operator/resource.ts'
import { isNumber } from '../../support/json-number.ts'
import type { Json } from './fields.ts'

/** What a body has as text, and a resource in a Secret: by the place of the text, the member that names the Secret. */
export const secretPlaces: Readonly<Record<string, string>> = {
  'delivery.signing.secret': 'delivery.signing.secretKeyRef',
  'sourceVerification.signingSecret': 'sourceVerification.secretKeyRef',
  'sourceVerification.previousSecret': 'sourceVerification.previousSecretKeyRef',
}

export interface VectorResource {
  readonly resource: Json
  /** Values of the Secret that has the name of the resource, by their keys; the key of the API is to be `apiKey`. */
  readonly secrets: Readonly<Record<string, string>>
}

/** What is no text cannot stand in a Secret, and stands in the place of its name. */
export function resourceOf(body: Json, name = 'vector'): VectorResource {
  const secrets: Record<string, string> = {}
  const spec = renamed(body, '', { name, secrets }) as Json
  const credentialsRef = { name, key: 'apiKey' }
  const resource = { apiVersion: API_VERSION, kind: KIND, metadata: { name } }
  return { resource: { ...resource, spec: { ...spec, credentialsRef } }, secrets }
}

interface Secret {
  readonly name: string
  readonly secrets: Record<string, string>
}

/** Members of the map of headers are no fields. */
function renamed(value: unknown, path: string, secret: Secret): unknown {
  if (!isObject(value) || path === 'delivery.headers') return value
  const members = Object.entries(value).map(([name, member]) => {
    const place = path === '' ? name : `${path}.${name}`
    const wanted = fieldOfResource(place).split('.').at(-1)
    if (secretPlaces[place] === undefined || typeof member !== 'string') {
      return [wanted, renamed(member, place, secret)]
    }
    secret.secrets[place] = member
    return [wanted, { name: secret.name, key: place }]
  })
  return Object.fromEntries(members)
}

/** Below `spec`. */
export function fieldOfResource(field: string): string {
  return field === 'name' ? 'displayName' : (secretPlaces[field] ?? field)
}

/** Fields at fault by the answer of an API server, as the admin API calls them; each once. */
export function fieldsAtFault(answer: Json): string[] {
  const { message, details } = answer as { message: string; details?: { causes?: Cause[] } }
  const unknown = [...message.matchAll(/unknown field "spec\.([^"]*)"/g)].map(([, field]) => field!)
  const causes = (details?.causes ?? []).filter(({ message }) => !message?.includes(NOT_CHECKED))
  const fields = causes.map(({ field = '' }) => fieldOfService(field.replace(/^spec\.?/, '')))
  const named = fields.filter((field) => field !== NO_FIELD)
  return [...new Set([...unknown, ...(named.length > 0 ? named : fields)])]
}

/** Also beside a cause that has one: a broken number is told twice. */
const NO_FIELD = '<nil>'

interface Cause {
  readonly field?: string
  readonly message?: string
}

/** Follows what else is wrong, and has no field. */
const NOT_CHECKED = 'some validation rules were not checked because the object was invalid'

function fieldOfService(field: string): string {
  if (field === 'displayName') return 'name'
  if (/^delivery\.headers[.[]/.test(field)) return 'delivery.headers'
  const [secret] = Object.entries(secretPlaces).find(([, ref]) => ref === field) ?? []
  return secret ?? field
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isNumber(value)
}
