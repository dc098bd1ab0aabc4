/**
 * What a schema cannot say about a Buffer, as CEL: the rules of `internal/domain/buffer-rules.ts`, and what belongs
 * to the resource alone. The service judges once more, so it also sees what comes out of Secrets.
 *
 * The default `{}` of an object is judged before the defaults of its members are filled in: hence every `has`.
 */
import { DEFAULT_SIGNATURE_HEADER } from '../../internal/domain/buffer-schema.ts'
import { REDACTED, UNREADABLE } from '../../internal/domain/buffer-secrets.ts'
import {
  credentialHeaders,
  forbiddenHeaderPrefixes,
  forbiddenHeaders,
  HEADER_NAME_MAX_LENGTH,
  HEADER_NAME_PATTERN,
  HEADERS_MAX_COUNT,
  HEADERS_MAX_SIZE,
} from '../../internal/domain/header-names.ts'
import { IDENTIFIER_MAX_LENGTH } from '../../internal/domain/identifiers.ts'
import { type CelRule, noneOf } from './structural.ts'
import { DESTINATION_PATTERN, UNREPAIRED_PATTERN } from './url-pattern.ts'

/** On the resource: its name becomes the identifier of the buffer when none is given. */
export const nameAsIdentifier: CelRule = {
  rule: `has(self.spec.bufferId) || self.metadata.name.size() <= ${IDENTIFIER_MAX_LENGTH}`,
  message: `spec.bufferId is required when metadata.name has more than ${IDENTIFIER_MAX_LENGTH} characters`,
  fieldPath: '.spec.bufferId',
}

export const immutable: CelRule = { rule: 'self == oldSelf', message: 'cannot be changed' }

/** On the parent of an optional field: a rule on the field itself does not see it come and go. */
export function neverSetLater(field: string): CelRule {
  return {
    rule: `has(self.${field}) == has(oldSelf.${field})`,
    message: `${field} cannot be set or removed later`,
    fieldPath: `.${field}`,
  }
}

export const groupKeyRules: readonly CelRule[] = [
  {
    rule: "self.mode != 'header' || has(self.fallbackHeader)",
    message: 'fallbackHeader is required in header mode',
    fieldPath: '.fallbackHeader',
  },
  {
    rule: "self.mode == 'header' || has(self.path) || has(self.fallbackHeader)",
    message: 'path or fallbackHeader is required',
    fieldPath: '.path',
  },
]

const CREDENTIALS = `r'(?i)^(${credentialHeaders.join('|')})$'`

/** On the name of a request header that is read: its value stands in deliveries. */
export const noCredential: CelRule = {
  rule: `!self.matches(${CREDENTIALS})`,
  message: 'must not name a header that carries credentials, or the signature',
}

/** On the spec: neither name is that of the sender's signature. */
export const noSignature: readonly CelRule[] = [
  ['groupKey', 'fallbackHeader'] as const,
  ['messageId', 'header'] as const,
].map(([parent, name]) => ({
  rule:
    `!has(self.${parent}) || !has(self.${parent}.${name}) || !has(self.sourceVerification) || ` +
    `!has(self.sourceVerification.signatureHeader) || ` +
    `self.${parent}.${name}.lowerAscii() != self.sourceVerification.signatureHeader.lowerAscii()`,
  message: `${name} must not name the signature header`,
  fieldPath: `.${parent}.${name}`,
}))

export const messageIdPlace: CelRule = {
  rule: 'has(self.path) || has(self.header)',
  message: 'path or header is required',
  fieldPath: '.path',
}

/** Storage in Postgres needs it; half a surrogate pair has become U+FFFD before an API server judges. */
export const storableText: CelRule = {
  rule: "!self.contains('\\u0000')",
  message: 'has a character that is not text',
}

export const urlRules: readonly CelRule[] = [
  storableText,
  {
    rule: `self.matches(r'${UNREPAIRED_PATTERN}') && self.matches(r'${DESTINATION_PATTERN}')`,
    message: 'must be an http or https URL',
  },
  {
    rule: "!self.matches(r'^[^/]*//[^/?#]*@')",
    message: 'must not contain credentials',
  },
]

const RESERVED = `r'(?i)^(${forbiddenHeaders.join('|')})$|^(${forbiddenHeaderPrefixes.join('|')})'`

/** On the name of a header that is set on deliveries. */
export const settableHeader: CelRule = {
  rule: `!self.matches(${RESERVED})`,
  message: 'is a reserved header name',
}

/** On the value of a header: a buffer that was read and sent back keeps what is stored, and a resource has nothing stored. */
export const notHidden: CelRule = noneOf([REDACTED, UNREADABLE], 'stands for a value that the service hides')

/** On the map of headers: what a schema says about the name of a field, it cannot say about the keys of a map. */
export const headersRules: readonly CelRule[] = [
  {
    rule: `self.all(n, n.size() <= ${HEADER_NAME_MAX_LENGTH} && n.matches(r"${HEADER_NAME_PATTERN}"))`,
    message: 'has a name that is not a valid header name',
  },
  {
    rule: `self.all(n, !n.matches(${RESERVED}))`,
    message: 'has a reserved header name',
  },
  {
    rule: 'self.all(a, self.exists_one(b, a.lowerAscii() == b.lowerAscii()))',
    message: 'names a header twice',
  },
  {
    rule: `self.map(n, n.size() + self[n].size()).sum() <= ${HEADERS_MAX_SIZE}`,
    message: `must have at most ${HEADERS_MAX_SIZE} characters`,
  },
]

/** The key of the list tells names apart by case, HTTP does not. */
export const distinctHeaders: CelRule = {
  rule: 'self.all(a, self.exists_one(b, a.name.lowerAscii() == b.name.lowerAscii()))',
  message: 'names a header twice',
}

const IDEMPOTENCY_HEADER = 'self.idempotencyHeader.lowerAscii()'
const SIGNATURE_HEADER = `(has(self.signing) ? self.signing.header.lowerAscii() : '${DEFAULT_SIGNATURE_HEADER}')`
const OWN_HEADERS = `[${IDEMPOTENCY_HEADER}, ${SIGNATURE_HEADER}]`

export const deliveryRules: readonly CelRule[] = [
  {
    rule: `${IDEMPOTENCY_HEADER} != ${SIGNATURE_HEADER}`,
    message: 'idempotencyHeader must differ from the signature header',
    fieldPath: '.idempotencyHeader',
  },
  {
    rule: `!has(self.headers) || !self.headers.exists(n, n.lowerAscii() in ${OWN_HEADERS})`,
    message: 'headers names a header that is set by the service itself',
    fieldPath: '.headers',
  },
  {
    rule: `!has(self.headersFrom) || !self.headersFrom.exists(h, h.name.lowerAscii() in ${OWN_HEADERS})`,
    message: 'headersFrom names a header that is set by the service itself',
    fieldPath: '.headersFrom',
  },
  {
    rule: '!has(self.headers) || !has(self.headersFrom) || !self.headersFrom.exists(h, self.headers.exists(n, n.lowerAscii() == h.name.lowerAscii()))',
    message: 'headersFrom names a header that headers has too',
    fieldPath: '.headersFrom',
  },
  {
    rule: `(has(self.headers) ? self.headers.size() : 0) + (has(self.headersFrom) ? self.headersFrom.size() : 0) <= ${HEADERS_MAX_COUNT}`,
    message: `headers and headersFrom must have at most ${HEADERS_MAX_COUNT} entries together`,
    fieldPath: '.headersFrom',
  },
]

export const backoffOrder: CelRule = {
  rule: '!has(self.initialMs) || !has(self.maxMs) || self.initialMs <= self.maxMs',
  message: 'initialMs must be <= maxMs',
  fieldPath: '.initialMs',
}

export const sourceSecret: CelRule = {
  rule: '!has(self.enabled) || !self.enabled || has(self.secretKeyRef)',
  message: 'secretKeyRef is required when enabled is true',
  fieldPath: '.secretKeyRef',
}
