/**
 * What of a buffer is secret, and the keys of the Secret that its resource names for it. A secret is what the admin API
 * does not show to viewers: the secrets of signatures, and the values of all headers, whatever their names.
 */
import { ExportError, type ExportedBuffer, type ExportOptions } from './buffer.ts'

export interface SecretKeyRef {
  readonly name: string
  readonly key: string
}

/** Where a secret of the buffer is to stand. */
export interface Reference {
  readonly ref: SecretKeyRef
  /** The field of the buffer that it comes from. */
  readonly field: string
}

export interface References {
  readonly signing?: Reference
  readonly source?: Reference
  readonly previousSource?: Reference
  readonly headers: readonly (Reference & { readonly header: string })[]
  /** What is printed; undefined: the buffer has no headers at all, or only secret ones. */
  readonly plain: Readonly<Record<string, string>> | undefined
}

/** What stands in an answer for a value that whoever asks may not see, or nobody can. */
const WITHHELD = ['[redacted]', '[unreadable]']

/** Throws an ExportError when a header that is to be printed cannot be. `name`: of the resource. */
export function referencesOf(buffer: ExportedBuffer, name: string, options: ExportOptions): References {
  const { delivery, sourceVerification: source } = buffer
  const place = (key: string, field: string): Reference => ({ ref: { name: `${name}-secrets`, key }, field })
  const printed = (header: string, value: string) => isPrinted(buffer, header, value, options)
  const headers = Object.entries(delivery.headers ?? {})
  const plain = headers.filter(([header, value]) => printed(header, value))
  const secret = headers.filter(([header, value]) => !printed(header, value)).map(([header]) => header)
  const keys = headerKeys(secret)
  return {
    ...(delivery.signing && { signing: place('signing-secret', 'delivery.signing.secret') }),
    ...(source?.signingSecret !== undefined && {
      source: place('source-secret', 'sourceVerification.signingSecret'),
    }),
    ...(source?.previousSecret !== undefined && {
      previousSource: place('previous-source-secret', 'sourceVerification.previousSecret'),
    }),
    headers: secret.map((header) => ({
      header,
      ...place(keys.get(header)!, `delivery.headers.${header}`),
    })),
    plain:
      plain.length > 0 || (delivery.headers && secret.length === 0) ? Object.fromEntries(plain) : undefined,
  }
}

/** No Secret can hold the empty value, and it tells nothing. */
function isPrinted(
  { bufferId }: ExportedBuffer,
  header: string,
  value: string,
  { plainHeaders }: ExportOptions,
): boolean {
  if (value === '') return true
  if (!plainHeaders.some((each) => each.toLowerCase() === header.toLowerCase())) return false
  if (!WITHHELD.includes(value)) return true
  throw new ExportError(
    `buffer ${bufferId}: the value of the header ${header} cannot be read, so it is not printed`,
  )
}

/** Names of headers have characters that no key may have. */
function headerKeys(headers: readonly string[]): Map<string, string> {
  const keys = new Map<string, string>()
  const taken = new Set<string>()
  for (const header of [...headers].sort()) {
    const key = `header-${header.toLowerCase().replace(/[^a-z0-9._-]/g, '_')}`
    let free = key
    for (let n = 2; taken.has(free); n++) free = `${key}-${n}`
    keys.set(header, free)
    taken.add(free)
  }
  return keys
}
