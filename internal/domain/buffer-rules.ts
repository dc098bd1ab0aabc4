/**
 * Rules of a buffer's configuration that its schema cannot say (docs/architecture/protocol.md, "One schema"). Each
 * takes a configuration that already passed the schema and returns what is wrong, naming the fields, or null.
 */
import { DEFAULT_SIGNATURE_HEADER } from './buffer-schema.ts'
import { UNREADABLE } from './buffer-secrets.ts'
import {
  HEADERS_MAX_SIZE,
  isCredentialHeader,
  isForbiddenHeader,
  isHeaderName,
  isHeaderValue,
} from './header-names.ts'
import type { BufferConfig } from './model.ts'
import { DEFAULT_SCHEME } from './signatures/schemes.ts'
import { secretProblem } from './signatures/secrets.ts'

type Rule = (config: BufferConfig) => string | readonly string[] | null

/** Storage in Postgres needs it: NUL has no place in its text, and a lone surrogate none in UTF-8. */
function storableStrings(config: BufferConfig): string[] {
  return unstorable(config, '')
}

function unstorable(value: unknown, path: string): string[] {
  if (typeof value === 'string') return isStorable(value) ? [] : [`${path} has a character that is not text`]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) =>
    isStorable(name)
      ? unstorable(member, path === '' ? name : `${path}.${name}`)
      : [`${path} has a name that is not text`],
  )
}

function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\u0000')
}

function keySource({ groupKey }: BufferConfig): string | null {
  if (groupKey.fallbackHeader !== undefined) return null
  if (groupKey.mode === 'header') return 'groupKey.fallbackHeader is required in header mode'
  return groupKey.path === undefined ? 'groupKey.path or groupKey.fallbackHeader is required' : null
}

function idSource({ messageId }: BufferConfig): string | null {
  if (messageId === undefined || messageId.path !== undefined || messageId.header !== undefined) return null
  return 'messageId.path or messageId.header is required'
}

/** What a URL parser silently repairs (blanks, backslashes, missing slashes) is refused: no two readers may differ. */
function destination({ delivery }: BufferConfig): string | null {
  const url = URL.parse(delivery.url)
  if (!url || /[\s\\]/.test(delivery.url) || !/^https?:\/\/[^/]/i.test(delivery.url)) {
    return 'delivery.url must be an http or https URL'
  }
  const authority = delivery.url.slice(delivery.url.indexOf('//') + 2).split(/[/?#]/, 1)[0] ?? ''
  return authority.includes('@') ? 'delivery.url must not contain credentials' : null
}

function backoffOrder({ throughput: { backoff } }: BufferConfig): string | null {
  if (backoff.initialMs <= backoff.maxMs) return null
  return 'throughput.backoff.initialMs must be <= throughput.backoff.maxMs'
}

function sourceSecret({ sourceVerification }: BufferConfig): string | null {
  if (!sourceVerification?.enabled || sourceVerification.signingSecret !== undefined) return null
  return 'sourceVerification.signingSecret is required when sourceVerification.enabled is true'
}

/** A secret that cannot be opened was judged when it was set; of it there is nothing to judge now. */
function usableSecrets({ sourceVerification }: BufferConfig): string[] {
  const { scheme = DEFAULT_SCHEME, signingSecret, previousSecret } = sourceVerification ?? {}
  return Object.entries({ signingSecret, previousSecret }).flatMap(([name, secret]) => {
    const problem = secret === undefined || secret === UNREADABLE ? null : secretProblem(scheme, secret)
    return problem === null ? [] : [`sourceVerification.${name} ${problem}`]
  })
}

/** Without signing its default header stays reserved: switching signing on must not clash with `headers`. */
function signatureHeader({ delivery }: BufferConfig): string {
  return (delivery.signing?.header ?? DEFAULT_SIGNATURE_HEADER).toLowerCase()
}

function ownHeaders(config: BufferConfig): string | null {
  const { idempotencyHeader, signing } = config.delivery
  if (isForbiddenHeader(idempotencyHeader)) return 'delivery.idempotencyHeader is a reserved header name'
  if (signing && isForbiddenHeader(signing.header)) return 'delivery.signing.header is a reserved header name'
  if (idempotencyHeader.toLowerCase() !== signatureHeader(config)) return null
  return 'delivery.idempotencyHeader must differ from the signature header'
}

function extraHeaders(config: BufferConfig): string[] {
  const taken = new Set([config.delivery.idempotencyHeader.toLowerCase(), signatureHeader(config)])
  const seen = new Set<string>()
  const problems: string[] = []
  let size = 0
  for (const [name, value] of Object.entries(config.delivery.headers ?? {})) {
    const problem = extraHeader(name, value, taken, seen)
    if (problem) problems.push(`delivery.headers.${name.slice(0, 128)} ${problem}`)
    seen.add(name.toLowerCase())
    size += name.length + value.length
  }
  if (size > HEADERS_MAX_SIZE)
    problems.push(`delivery.headers must have at most ${HEADERS_MAX_SIZE} characters`)
  return problems
}

function extraHeader(
  name: string,
  value: string,
  taken: ReadonlySet<string>,
  seen: ReadonlySet<string>,
): string | null {
  const lower = name.toLowerCase()
  if (!isHeaderName(name)) return 'is not a valid header name'
  if (isForbiddenHeader(name)) return 'is a reserved header name'
  if (taken.has(lower)) return 'is set by the service itself'
  if (seen.has(lower)) return 'is given twice'
  return isHeaderValue(value) ? null : 'must be printable Latin-1 characters'
}

/**
 * Names of request headers whose values would stand in deliveries: none that carries credentials, nor the signature of the sender.
 * What was wrong in `stored` stays: it must not block other changes, and extraction does not read it.
 */
export function credentialNames(config: BufferConfig, stored: BufferConfig | undefined): string[] {
  const before = new Set(stored && namedCredentials(stored).map(String))
  return namedCredentials(config)
    .filter((fault) => !before.has(String(fault)))
    .map(([field]) => `${field} must not name a header that carries credentials, or the signature`)
}

/** Also while verification is off: switching it on must not clash with the places of the key and the id. */
function namedCredentials({ groupKey, messageId, sourceVerification }: BufferConfig) {
  const places = [
    ['groupKey.fallbackHeader', groupKey.fallbackHeader],
    ['messageId.header', messageId?.header],
  ] as const
  const signature = sourceVerification?.signatureHeader
  return places.filter(([, name]) => name !== undefined && isCredentialHeader(name, signature))
}

const rules: readonly Rule[] = [
  storableStrings,
  keySource,
  idSource,
  destination,
  backoffOrder,
  sourceSecret,
  usableSecrets,
  ownHeaders,
  extraHeaders,
]

/** What is wrong with `config` by all rules, in words. */
export function brokenRules(config: BufferConfig): string[] {
  return rules.flatMap((rule) => rule(config) ?? [])
}
