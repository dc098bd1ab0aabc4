/** What each CEL rule of the definition accepts and refuses. A rule without its row here fails the suite. */
import {
  credentialHeaders,
  forbiddenHeaderPrefixes,
  forbiddenHeaders,
} from '../../../internal/domain/header-names.ts'
import {
  type Field,
  fieldsOf,
  fullResource,
  type Json,
  type Path,
  resourceSchema,
  withValue,
} from './fields.ts'

/** Values to set in the full resource, by dotted path; undefined removes. */
export type Change = Readonly<Record<string, unknown>>

export interface RuleCases {
  /** Path of the rule's field, empty for the resource. */
  readonly field: string
  readonly message: string
  readonly accepted: readonly Change[]
  readonly refused: readonly Change[]
  /** They are changes of a resource that exists. */
  readonly update?: true
  /** The service has no such rule. */
  readonly own?: true
}

const reserved = [
  ...forbiddenHeaders,
  ...forbiddenHeaderPrefixes.map((prefix) => `${prefix}anything`),
  'CONTENT-Type',
  'Host',
]
const ordinary = ['X-Anything', 'hosts', 'x-host', 'content', 'proxy', 'tea']

function headerRows(field: string): RuleCases {
  return {
    field,
    message: 'is a reserved header name',
    accepted: ordinary.map((name) => ({ [field]: name })),
    refused: reserved.map((name) => ({ [field]: name })),
  }
}

const DELIVERY = 'spec.delivery'
const ref = { name: 'secrets', key: 'one' }
const headersFrom = (...names: string[]) => names.map((name) => ({ name, secretKeyRef: ref }))
const headers = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`X-Header-${n}`, 'text']))
/** Headers whose names and values have that many characters together. */
const bulk = (characters: number) => ({
  ...Object.fromEntries(['a', 'b', 'c'].map((name) => [name, long(4095)])),
  d: long(characters - 3 * 4096 - 1),
})
const long = (length: number) => 'n'.repeat(length)

export const ruleCases: readonly RuleCases[] = [
  {
    field: '',
    message: 'spec.bufferId is required when metadata.name has more than 128 characters',
    accepted: [
      { 'metadata.name': long(128), 'spec.bufferId': undefined },
      { 'metadata.name': long(129), 'spec.displayName': undefined },
    ],
    refused: [{ 'metadata.name': long(129), 'spec.bufferId': undefined }],
  },
  {
    field: 'spec',
    message: 'bufferId cannot be set or removed later',
    accepted: [{ 'spec.displayName': 'Another name' }],
    refused: [{ 'spec.bufferId': undefined }],
    update: true,
    own: true,
  },
  ...['spec.bufferId', 'spec.projectId'].map((field) => ({
    field,
    message: 'cannot be changed',
    accepted: [{ 'spec.enabled': false }],
    refused: [{ [field]: 'another' }],
    update: true as const,
    own: true as const,
  })),
  ...['spec.bufferId', 'spec.projectId'].map((field) => ({
    field,
    message: 'must not be . or ..',
    accepted: ['...', '.a', '..a', 'a.'].map((id) => ({ [field]: id })),
    refused: ['.', '..'].map((id) => ({ [field]: id })),
  })),
  ...['spec.groupKey.path', 'spec.messageId.path', 'spec.delivery.url'].map((field) => {
    const start = field.endsWith('url') ? 'https://h/' : '$.a'
    return {
      field,
      message: 'has a character that is not text',
      accepted: ['\u0001', '\ufffd'].map((text) => ({ [field]: start + text })),
      refused: [{ [field]: `${start}\u0000` }],
    }
  }),
  ...['spec.groupKey.fallbackHeader', 'spec.messageId.header'].map((field) => ({
    field,
    message: 'must not name a header that carries credentials, or the signature',
    accepted: ['X-Customer', 'x-api-keys', 'cookies', 'my-authorization'].map((name) => ({ [field]: name })),
    refused: [...credentialHeaders, 'X-API-Key'].map((name) => ({ [field]: name })),
  })),
  ...(
    [
      ['groupKey', 'fallbackHeader'],
      ['messageId', 'header'],
    ] as const
  ).map(([parent, name]) => {
    const at = (header: string) => ({
      [`spec.${parent}.${name}`]: header,
      'spec.sourceVerification.signatureHeader': 'X-Signature',
    })
    return {
      field: 'spec',
      message: `${name} must not name the signature header`,
      accepted: [at('X-Customer')],
      refused: [at('x-signature')],
    }
  }),
  {
    field: 'spec.groupKey',
    message: 'fallbackHeader is required in header mode',
    accepted: [{ 'spec.groupKey': { mode: 'header', fallbackHeader: 'X-Customer' } }],
    refused: [{ 'spec.groupKey': { mode: 'header', path: '$.a' } }],
  },
  {
    field: 'spec.groupKey',
    message: 'path or fallbackHeader is required',
    accepted: [
      { 'spec.groupKey': { mode: 'jsonpath', path: '$.a' } },
      { 'spec.groupKey': { mode: 'jsonpath', fallbackHeader: 'X-Customer' } },
    ],
    refused: [{ 'spec.groupKey': { mode: 'jsonpath' } }],
  },
  {
    field: 'spec.messageId',
    message: 'path or header is required',
    accepted: [
      { 'spec.messageId': { path: '$.a' } },
      { 'spec.messageId': { header: 'X-Id' } },
      { 'spec.messageId': undefined },
    ],
    refused: [{ 'spec.messageId': {} }],
  },
  {
    field: `${DELIVERY}.url`,
    message: 'must be an http or https URL',
    accepted: [
      'http://h',
      'HTTPS://host:8443/a?b=c#d',
      'http://[2001:db8::1]:80/',
      'https://h/a@b',
      'https://h?at=@',
      'https://bücher.example/ä',
      'https://{host}/100%#\u007f',
      'https://a%41b/',
      'https://0x7f.1:065535/',
    ].map((url) => ({ [`${DELIVERY}.url`]: url })),
    refused: ['http:///path', 'https://', 'http://?a', 'http://:80/', 'http://h/a b', 'http://h/a\\b']
      .concat(['http://h/\u00a0', 'http://h/\u2028', 'http://\ufeffh', 'http://h:65536/'])
      .concat(['http://256.1.1.1/', 'http://a.1/', 'http://[fe80::1%25eth0]/', 'http://a%2fb/'])
      .map((url) => ({ [`${DELIVERY}.url`]: url })),
  },
  {
    field: `${DELIVERY}.url`,
    message: 'must not contain credentials',
    accepted: [{ [`${DELIVERY}.url`]: 'https://h/a@b' }],
    refused: ['https://user@h/', 'https://user:word@h', 'https://user:word@h?q', 'https://@h/'].map(
      (url) => ({
        [`${DELIVERY}.url`]: url,
      }),
    ),
  },
  headerRows(`${DELIVERY}.idempotencyHeader`),
  headerRows(`${DELIVERY}.signing.header`),
  headerRows(`${DELIVERY}.headersFrom.[].name`),
  {
    field: DELIVERY,
    message: 'idempotencyHeader must differ from the signature header',
    accepted: [
      { [`${DELIVERY}.signing.header`]: 'x-a', [`${DELIVERY}.idempotencyHeader`]: 'x-svc-signature' },
      { [`${DELIVERY}.signing`]: undefined, [`${DELIVERY}.idempotencyHeader`]: 'x-a' },
    ],
    refused: [
      { [`${DELIVERY}.signing.header`]: 'x-a', [`${DELIVERY}.idempotencyHeader`]: 'X-A' },
      { [`${DELIVERY}.signing.header`]: 'X-Idempotency-Key' },
      { [`${DELIVERY}.signing`]: undefined, [`${DELIVERY}.idempotencyHeader`]: 'X-Svc-Signature' },
    ],
  },
  {
    field: DELIVERY,
    message: 'headers names a header that is set by the service itself',
    accepted: [{ [`${DELIVERY}.headers`]: { 'x-a': 'one' } }],
    refused: [
      { [`${DELIVERY}.headers`]: { 'X-Idempotency-Key': 'one' } },
      { [`${DELIVERY}.headers`]: { 'x-a': 'one' }, [`${DELIVERY}.signing.header`]: 'X-A' },
      { [`${DELIVERY}.headers`]: { 'X-Svc-Signature': 'one' }, [`${DELIVERY}.signing`]: undefined },
    ],
  },
  {
    field: DELIVERY,
    message: 'headersFrom names a header that is set by the service itself',
    accepted: [{ [`${DELIVERY}.headersFrom`]: headersFrom('x-a', 'x-b') }],
    refused: [
      { [`${DELIVERY}.headersFrom`]: headersFrom('x-a', 'X-Idempotency-Key') },
      { [`${DELIVERY}.headersFrom`]: headersFrom('X-Svc-Signature') },
      { [`${DELIVERY}.headersFrom`]: headersFrom('X-Svc-Signature'), [`${DELIVERY}.signing`]: undefined },
    ],
  },
  {
    field: DELIVERY,
    message: 'headersFrom names a header that headers has too',
    accepted: [
      { [`${DELIVERY}.headers`]: { 'x-a': 'one' }, [`${DELIVERY}.headersFrom`]: headersFrom('x-b') },
    ],
    refused: [
      { [`${DELIVERY}.headers`]: { 'x-a': 'one' }, [`${DELIVERY}.headersFrom`]: headersFrom('X-A') },
      { [`${DELIVERY}.headers`]: { 'X-A': 'one' }, [`${DELIVERY}.headersFrom`]: headersFrom('x-b', 'x-a') },
    ],
  },
  {
    field: DELIVERY,
    message: 'headers and headersFrom must have at most 50 entries together',
    accepted: [
      { [`${DELIVERY}.headers`]: headers(48), [`${DELIVERY}.headersFrom`]: headersFrom('x-a', 'x-b') },
    ],
    refused: [
      { [`${DELIVERY}.headers`]: headers(49), [`${DELIVERY}.headersFrom`]: headersFrom('x-a', 'x-b') },
    ],
  },
  {
    field: `${DELIVERY}.headers`,
    message: 'has a name that is not a valid header name',
    accepted: [{ [`${DELIVERY}.headers`]: { [long(128)]: 'one', "!#$%&'*+.^_`|~-": 'two' } }],
    refused: [long(129), '', 'a b', 'a:', 'ä', 'a\n', '"a"'].map((name) => ({
      [`${DELIVERY}.headers`]: { 'x-a': 'one', [name]: 'two' },
    })),
  },
  {
    field: `${DELIVERY}.headers`,
    message: 'has a reserved header name',
    accepted: [{ [`${DELIVERY}.headers`]: Object.fromEntries(ordinary.map((name) => [name, 'one'])) }],
    refused: reserved.map((name) => ({
      [`${DELIVERY}.headers`]: Object.fromEntries([
        ['x-a', 'one'],
        [name, 'two'],
      ]),
    })),
  },
  {
    field: `${DELIVERY}.headers.*`,
    message: 'stands for a value that the service hides',
    accepted: [{ [`${DELIVERY}.headers`]: { 'x-a': 'redacted', 'x-b': '[redacted] ' } }],
    refused: ['[redacted]', '[unreadable]'].map((value) => ({
      [`${DELIVERY}.headers`]: { 'x-a': 'one', 'x-b': value },
    })),
  },
  {
    field: `${DELIVERY}.headers`,
    message: 'names a header twice',
    accepted: [{ [`${DELIVERY}.headers`]: { 'x-a': 'one', 'x-b': 'one' } }],
    refused: [{ [`${DELIVERY}.headers`]: { 'x-a': 'one', 'X-A': 'one' } }],
  },
  {
    field: `${DELIVERY}.headers`,
    message: 'must have at most 16384 characters',
    accepted: [{ [`${DELIVERY}.headers`]: bulk(16_384), [`${DELIVERY}.headersFrom`]: undefined }],
    refused: [{ [`${DELIVERY}.headers`]: bulk(16_385), [`${DELIVERY}.headersFrom`]: undefined }],
  },
  {
    field: `${DELIVERY}.headersFrom`,
    message: 'names a header twice',
    accepted: [{ [`${DELIVERY}.headersFrom`]: headersFrom('x-a', 'x-b') }],
    refused: [{ [`${DELIVERY}.headersFrom`]: headersFrom('x-a', 'X-A') }],
  },
  {
    field: 'spec.throughput.backoff',
    message: 'initialMs must be <= maxMs',
    accepted: [
      { 'spec.throughput.backoff': { initialMs: 5000, maxMs: 5000 } },
      { 'spec.throughput.backoff': { initialMs: 60_000 } },
      { 'spec.throughput.backoff': { maxMs: 1000 } },
    ],
    refused: [
      { 'spec.throughput.backoff': { initialMs: 5001, maxMs: 5000 } },
      { 'spec.throughput.backoff': { initialMs: 60_001 } },
      { 'spec.throughput.backoff': { maxMs: 999 } },
    ],
  },
  {
    field: 'spec.sourceVerification',
    message: 'secretKeyRef is required when enabled is true',
    accepted: [
      { 'spec.sourceVerification': { enabled: true, secretKeyRef: ref } },
      { 'spec.sourceVerification': { enabled: false } },
      { 'spec.sourceVerification': { secretKeyRef: ref } },
    ],
    refused: [{ 'spec.sourceVerification': { enabled: true } }],
  },
]

/** Every rule that the definition has, as `field: message`. */
export function rulesOfTheDefinition(): string[] {
  const whole: Field = { path: [], schema: resourceSchema, required: true }
  return [whole, ...fieldsOf('spec'), ...fieldsOf('status')].flatMap(({ path, schema }) =>
    (schema['x-kubernetes-validations'] ?? []).map(({ message }) => `${path.join('.')}: ${message}`),
  )
}

/** The full resource with `change` made to it. */
export function changed(change: Change): Json {
  return Object.entries(change).reduce(
    (resource, [path, value]) => withValue(resource, path.split('.') as Path, value),
    fullResource(),
  )
}
