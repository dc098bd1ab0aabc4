/** What each CEL rule of the definition accepts and refuses. A rule without its row here fails the suite. */
import { forbiddenHeaderPrefixes, forbiddenHeaders } from '../../../internal/domain/header-names.ts'
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

const delivery = 'spec.delivery'
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
    field: `${delivery}.url`,
    message: 'must be an http or https URL',
    accepted: [
      'http://h',
      'HTTPS://host:8443/a?b=c#d',
      'http://[2001:db8::1]:80/',
      'https://h/a@b',
      'https://h?at=@',
      'https://bücher.example/ä',
    ].map((url) => ({ [`${delivery}.url`]: url })),
    refused: ['http:///path', 'https://', 'http://?a', 'http://:80/', 'http://h/a b', 'http://h/a\\b']
      .concat(['http://h/\u00a0', 'http://h/\u2028', 'http://\ufeffh'])
      .map((url) => ({ [`${delivery}.url`]: url })),
  },
  {
    field: `${delivery}.url`,
    message: 'must not contain credentials',
    accepted: [{ [`${delivery}.url`]: 'https://h/a@b' }],
    refused: ['https://user@h/', 'https://user:word@h', 'https://user:word@h?q', 'https://@h/'].map(
      (url) => ({
        [`${delivery}.url`]: url,
      }),
    ),
  },
  headerRows(`${delivery}.idempotencyHeader`),
  headerRows(`${delivery}.signing.header`),
  headerRows(`${delivery}.headersFrom.[].name`),
  {
    field: delivery,
    message: 'idempotencyHeader must differ from the signature header',
    accepted: [
      { [`${delivery}.signing.header`]: 'x-a', [`${delivery}.idempotencyHeader`]: 'x-svc-signature' },
      { [`${delivery}.signing`]: undefined, [`${delivery}.idempotencyHeader`]: 'x-a' },
    ],
    refused: [
      { [`${delivery}.signing.header`]: 'x-a', [`${delivery}.idempotencyHeader`]: 'X-A' },
      { [`${delivery}.signing.header`]: 'X-Idempotency-Key' },
      { [`${delivery}.signing`]: undefined, [`${delivery}.idempotencyHeader`]: 'X-Svc-Signature' },
    ],
  },
  {
    field: delivery,
    message: 'headers names a header that is set by the service itself',
    accepted: [{ [`${delivery}.headers`]: { 'x-a': 'one' } }],
    refused: [
      { [`${delivery}.headers`]: { 'X-Idempotency-Key': 'one' } },
      { [`${delivery}.headers`]: { 'x-a': 'one' }, [`${delivery}.signing.header`]: 'X-A' },
      { [`${delivery}.headers`]: { 'X-Svc-Signature': 'one' }, [`${delivery}.signing`]: undefined },
    ],
  },
  {
    field: delivery,
    message: 'headersFrom names a header that is set by the service itself',
    accepted: [{ [`${delivery}.headersFrom`]: headersFrom('x-a', 'x-b') }],
    refused: [
      { [`${delivery}.headersFrom`]: headersFrom('x-a', 'X-Idempotency-Key') },
      { [`${delivery}.headersFrom`]: headersFrom('X-Svc-Signature') },
      { [`${delivery}.headersFrom`]: headersFrom('X-Svc-Signature'), [`${delivery}.signing`]: undefined },
    ],
  },
  {
    field: delivery,
    message: 'headersFrom names a header that headers has too',
    accepted: [
      { [`${delivery}.headers`]: { 'x-a': 'one' }, [`${delivery}.headersFrom`]: headersFrom('x-b') },
    ],
    refused: [
      { [`${delivery}.headers`]: { 'x-a': 'one' }, [`${delivery}.headersFrom`]: headersFrom('X-A') },
      { [`${delivery}.headers`]: { 'X-A': 'one' }, [`${delivery}.headersFrom`]: headersFrom('x-b', 'x-a') },
    ],
  },
  {
    field: delivery,
    message: 'headers and headersFrom must have at most 50 entries together',
    accepted: [
      { [`${delivery}.headers`]: headers(48), [`${delivery}.headersFrom`]: headersFrom('x-a', 'x-b') },
    ],
    refused: [
      { [`${delivery}.headers`]: headers(49), [`${delivery}.headersFrom`]: headersFrom('x-a', 'x-b') },
    ],
  },
  {
    field: `${delivery}.headers`,
    message: 'has a name that is not a valid header name',
    accepted: [{ [`${delivery}.headers`]: { [long(128)]: 'one', "!#$%&'*+.^_`|~-": 'two' } }],
    refused: [long(129), '', 'a b', 'a:', 'ä', 'a\n', '"a"'].map((name) => ({
      [`${delivery}.headers`]: { 'x-a': 'one', [name]: 'two' },
    })),
  },
  {
    field: `${delivery}.headers`,
    message: 'has a reserved header name',
    accepted: [{ [`${delivery}.headers`]: Object.fromEntries(ordinary.map((name) => [name, 'one'])) }],
    refused: reserved.map((name) => ({
      [`${delivery}.headers`]: Object.fromEntries([
        ['x-a', 'one'],
        [name, 'two'],
      ]),
    })),
  },
  {
    field: `${delivery}.headers`,
    message: 'names a header twice',
    accepted: [{ [`${delivery}.headers`]: { 'x-a': 'one', 'x-b': 'one' } }],
    refused: [{ [`${delivery}.headers`]: { 'x-a': 'one', 'X-A': 'one' } }],
  },
  {
    field: `${delivery}.headers`,
    message: 'must have at most 16384 characters',
    accepted: [{ [`${delivery}.headers`]: bulk(16_384), [`${delivery}.headersFrom`]: undefined }],
    refused: [{ [`${delivery}.headers`]: bulk(16_385), [`${delivery}.headersFrom`]: undefined }],
  },
  {
    field: `${delivery}.headersFrom`,
    message: 'names a header twice',
    accepted: [{ [`${delivery}.headersFrom`]: headersFrom('x-a', 'x-b') }],
    refused: [{ [`${delivery}.headersFrom`]: headersFrom('x-a', 'X-A') }],
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
