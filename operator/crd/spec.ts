/** `spec` of the resource: a buffer's configuration as the admin API takes it, but for secrets, which are only named. */
import { bufferCreateSchema } from '../../internal/domain/buffer-schema.ts'
import { HEADER_VALUE_PATTERN, HEADERS_MAX_COUNT } from '../../internal/domain/header-names.ts'
import type { Schema } from '../../internal/domain/schema-parts.ts'
import { DEFAULT_CREDENTIALS_KEY } from '../resource.ts'
import {
  backoffOrder,
  deliveryRules,
  distinctHeaders,
  groupKeyRules,
  headersRules,
  immutable,
  messageIdPlace,
  neverSetLater,
  noCredential,
  noSignature,
  notHidden,
  settableHeader,
  sourceSecret,
  storableText,
  urlRules,
} from './rules.ts'
import { listByKey, object, readByRules, ruled, type StructuralSchema, structural } from './structural.ts'

type Members = Record<string, StructuralSchema>

/** The configuration's schema at a path of members, in the resource's dialect. */
function field(...path: string[]): StructuralSchema {
  const found = path.reduce<Schema | undefined>(
    (schema, name) => schema?.properties?.[name],
    bufferCreateSchema,
  )
  if (found === undefined) throw new Error(`a buffer has no ${path.join('.')}`)
  return structural(found)
}

function saying(schema: StructuralSchema, more: string): StructuralSchema {
  return { ...schema, description: `${schema.description} ${more}` }
}

/** `schema` with some members put in the place of others of the same name, or added. */
function having(schema: StructuralSchema, members: Members): StructuralSchema {
  return { ...schema, properties: { ...schema.properties, ...members } }
}

/** `schema` with the text of `secret` replaced by the place of a Secret, which is called `ref`. */
function naming(
  schema: StructuralSchema,
  secret: string,
  reference: StructuralSchema,
  ref = 'secretKeyRef',
): StructuralSchema {
  const members = Object.entries(schema.properties ?? {}).map(([name, member]) =>
    name === secret ? ([ref, reference] as const) : ([name, member] as const),
  )
  const required = schema.required?.map((name) => (name === secret ? ref : name))
  return { ...schema, ...(required && { required }), properties: Object.fromEntries(members) }
}

function secretKeyRef(description: string, defaultKey?: string): StructuralSchema {
  const name: StructuralSchema = {
    type: 'string',
    description: 'Name of a Secret in the namespace of this resource.',
    minLength: 1,
    maxLength: 253,
    pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
  }
  const key: StructuralSchema = {
    type: 'string',
    description: 'Key within the Secret.',
    minLength: 1,
    maxLength: 253,
    pattern: '^[-._a-zA-Z0-9]+$',
    ...(defaultKey !== undefined && { default: defaultKey }),
  }
  const required = defaultKey === undefined ? ['name', 'key'] : ['name']
  return { ...object(description, { name, key }, required), 'x-kubernetes-map-type': 'atomic' }
}

function choice(description: string, values: readonly [string, ...string[]]): StructuralSchema {
  return { type: 'string', description, enum: values, default: values[0] }
}

function withoutDefault({ default: _default, ...rest }: StructuralSchema): StructuralSchema {
  return rest
}

function header(...path: string[]): StructuralSchema {
  return ruled(field(...path), settableHeader)
}

/** Where something of a webhook is read: a path of its body, and a header. */
function place(name: string, headerField: string): StructuralSchema {
  return having(field(name), {
    path: ruled(field(name, 'path'), storableText),
    [headerField]: ruled(field(name, headerField), noCredential),
  })
}

function enabled(): StructuralSchema {
  return saying(
    withoutDefault(field('enabled')),
    'Not managed when unset: a new buffer is enabled, and nobody who disables it is overruled.',
  )
}

function delivery(): StructuralSchema {
  const signing = naming(
    field('delivery', 'signing'),
    'secret',
    secretKeyRef('Where the secret of the HMAC stands: 1 to 1,024 characters.'),
  )
  return ruled(
    having(field('delivery'), {
      url: ruled(field('delivery', 'url'), ...urlRules),
      headers: headers(),
      headersFrom: headersFrom(),
      idempotencyHeader: header('delivery', 'idempotencyHeader'),
      signing: having(signing, { header: header('delivery', 'signing', 'header') }),
    }),
    ...deliveryRules,
  )
}

function headers(): StructuralSchema {
  const map = saying(
    field('delivery', 'headers'),
    'They show in this resource: secret ones go to headersFrom.',
  )
  const value = ruled({ ...map.additionalProperties!, pattern: HEADER_VALUE_PATTERN }, notHidden)
  return ruled({ ...map, additionalProperties: value }, ...headersRules)
}

function headersFrom(): StructuralSchema {
  const name = withoutDefault(header('delivery', 'idempotencyHeader'))
  const entry = object('A header and where its value stands.', {
    name: { ...name, description: 'Name of the header.' },
    secretKeyRef: secretKeyRef('Where the value of the header stands: printable Latin-1 characters.'),
  })
  const list = listByKey('Extra headers whose values are secret.', 'name', HEADERS_MAX_COUNT, entry)
  return ruled(list, distinctHeaders)
}

function throughput(): StructuralSchema {
  const backoff = having(field('throughput', 'backoff'), {
    initialMs: readByRules(field('throughput', 'backoff', 'initialMs')),
    maxMs: readByRules(field('throughput', 'backoff', 'maxMs')),
  })
  return having(field('throughput'), { backoff: ruled(backoff, backoffOrder) })
}

function sourceVerification(): StructuralSchema {
  const named = naming(
    field('sourceVerification'),
    'signingSecret',
    secretKeyRef(
      'Where the secret of the HMAC stands: 1 to 1,024 characters; of standard-webhooks base64, with or without whsec_ in front.',
    ),
  )
  const both = naming(
    named,
    'previousSecret',
    secretKeyRef(
      'Where a second secret stands whose signatures are good too, while a sender changes its secret.',
    ),
    'previousSecretKeyRef',
  )
  const described = {
    ...field('sourceVerification', 'enabled'),
    description: 'Whether webhooks without a valid signature are refused; needs secretKeyRef.',
  }
  return ruled(having(both, { enabled: described }), sourceSecret)
}

export function specSchema(): StructuralSchema {
  const orName = 'The name of this resource when unset.'
  const spec = object(
    'What the buffer is to be.',
    {
      bufferId: ruled(saying(field('bufferId'), `${orName} Cannot be changed.`), immutable),
      projectId: ruled(saying(field('projectId'), 'Cannot be changed.'), immutable),
      displayName: saying(field('name'), orName),
      enabled: enabled(),
      groupKey: ruled(place('groupKey', 'fallbackHeader'), ...groupKeyRules),
      messageId: ruled(place('messageId', 'header'), messageIdPlace),
      batch: field('batch'),
      overflow: field('overflow'),
      delivery: delivery(),
      throughput: throughput(),
      dlqPauseThreshold: field('dlqPauseThreshold'),
      sourceVerification: sourceVerification(),
      requireApiKey: field('requireApiKey'),
      analytics: field('analytics'),
      credentialsRef: secretKeyRef(
        'Where the API key stands with which this buffer is configured: one of the role member or above.',
        DEFAULT_CREDENTIALS_KEY,
      ),
      deletionPolicy: choice(
        'What becomes of the buffer when this resource is deleted: "Delete" deletes it, "Orphan" leaves it as it is.',
        ['Delete', 'Orphan'],
      ),
      adoptionPolicy: choice(
        'What happens when a buffer of this identifier exists already: "Never" leaves it alone, "Adopt" takes it over.',
        ['Never', 'Adopt'],
      ),
    },
    ['projectId', 'groupKey', 'delivery', 'credentialsRef'],
  )
  return ruled(spec, neverSetLater('bufferId'), ...noSignature)
}
