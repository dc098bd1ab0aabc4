/**
 * What a webhook presents as its signature, read from its headers by the rules of each scheme
 * (docs/reference/buffers.md, "Source verification"). Nothing of it is proven yet.
 */
import type { HeaderLookup } from '../extract.ts'
import type { SignatureScheme } from './schemes.ts'

/** Signatures of one header that are looked at; a sender that changes its secret sends two. */
export const MOST_SIGNATURES = 16

export interface Presented {
  /** As the header has them, without what says their kind; at most `MOST_SIGNATURES`. */
  readonly signatures: readonly string[]
  /** What is signed in front of the body. */
  readonly prefix: string
  /** Unix seconds; undefined: the scheme has no time stamp. */
  readonly sentAt: number | undefined
}

/** `missing`: a header that belongs to the signature is missing or empty. `malformed`: no signature has this form. */
export type Reading = Presented | 'missing' | 'malformed'

/** Of a scheme, `signatureHeader` being the name of the header with the signature. */
export function readPresented(
  scheme: SignatureScheme,
  signatureHeader: string,
  header: HeaderLookup,
): Reading {
  const value = header(signatureHeader)
  return value ? readers[scheme](value, signatureHeader, header) : 'missing'
}

type Reader = (value: string, signatureHeader: string, header: HeaderLookup) => Reading

const readers: Readonly<Record<SignatureScheme, Reader>> = {
  hex: ofBody,
  shopify: ofBody,
  github: (value) => (value.startsWith('sha256=') ? ofBody(value.slice('sha256='.length)) : 'malformed'),
  stripe,
  slack,
  'standard-webhooks': standardWebhooks,
}

function ofBody(signature: string): Presented {
  return { signatures: [signature], prefix: '', sentAt: undefined }
}

/** `t=…,v1=…[,v1=…]`; other members are those of other versions. */
function stripe(value: string): Reading {
  const members = value.split(',').map((member) => member.trim())
  const stamps = valuesOf(members, 't=')
  const [stamp] = stamps
  // Two stamps would leave open which of them is signed.
  if (stamp === undefined || stamps.length > 1) return 'malformed'
  return stamped(valuesOf(members, 'v1='), stamp, `${stamp}.`)
}

/** `v0=…`, and the time stamp in a header of its own. */
function slack(value: string, _name: string, header: HeaderLookup): Reading {
  const stamp = header('x-slack-request-timestamp')
  if (!stamp) return 'missing'
  return stamped(valuesOf([value], 'v0='), stamp, `v0:${stamp}:`)
}

/** `v1,…`, several of them apart by blanks, with an id and a time stamp in headers of the same beginning. */
function standardWebhooks(value: string, name: string, header: HeaderLookup): Reading {
  const beginning = /^(.*)-signature$/i.exec(name)?.[1] ?? 'webhook'
  const id = header(`${beginning}-id`)
  const stamp = header(`${beginning}-timestamp`)
  if (!id || !stamp) return 'missing'
  // With a dot in the id, one signed text could be read as several ids, time stamps and bodies.
  if (id.includes('.')) return 'malformed'
  return stamped(valuesOf(value.split(' '), 'v1,'), stamp, `${id}.${stamp}.`)
}

function valuesOf(members: readonly string[], kind: string): string[] {
  return members.filter((member) => member.startsWith(kind)).map((member) => member.slice(kind.length))
}

function stamped(signatures: readonly string[], stamp: string, prefix: string): Reading {
  if (signatures.length === 0 || !/^[0-9]{1,12}$/.test(stamp)) return 'malformed'
  return { signatures: signatures.slice(0, MOST_SIGNATURES), prefix, sentAt: Number(stamp) }
}
