/** Whether a webhook comes from who shares a secret with its buffer (docs/reference/buffers.md, "Source verification"). */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { HeaderLookup } from '../extract.ts'
import { type Presented, readPresented } from './presented.ts'
import { DEFAULT_SCHEME, DEFAULT_TOLERANCE_SECONDS, type SignatureScheme } from './schemes.ts'
import { keyOf } from './secrets.ts'

/** What a buffer says of the signatures of its webhooks. */
export interface SignatureRule {
  readonly scheme?: SignatureScheme
  readonly signatureHeader: string
  readonly signingSecret: string
  /** Good as well, while a sender changes its secret. */
  readonly previousSecret?: string
  /** Seconds. */
  readonly toleranceSeconds?: number
}

export interface SignedWebhook {
  readonly header: HeaderLookup
  /** The raw bytes. */
  readonly body: Uint8Array
  /** Unix milliseconds. */
  readonly receivedAt: number
}

/** `stale`: the signature is good, but its time stamp is too far from now. */
export type SignatureVerdict = 'good' | 'missing' | 'invalid' | 'stale'

/** The same work is done whichever secret and whichever signature is the right one. */
export function judgeSignature(rule: SignatureRule, webhook: SignedWebhook): SignatureVerdict {
  const { scheme = DEFAULT_SCHEME, signatureHeader, toleranceSeconds = DEFAULT_TOLERANCE_SECONDS } = rule
  const presented = readPresented(scheme, signatureHeader, webhook.header)
  if (presented === 'missing') return 'missing'
  if (presented === 'malformed') return 'invalid'
  const secrets = [rule.signingSecret, rule.previousSecret].filter((secret) => secret !== undefined)
  const expected = secrets.map((secret) => signatureOf(scheme, secret, presented, webhook.body))
  if (!sharesOne(expected, presented.signatures)) return 'invalid'
  return isStale(presented.sentAt, webhook.receivedAt, toleranceSeconds) ? 'stale' : 'good'
}

/** In Latin-1, as the header came over the wire. */
function signatureOf(
  scheme: SignatureScheme,
  secret: string,
  { prefix }: Presented,
  body: Uint8Array,
): string {
  const encoding = scheme === 'shopify' || scheme === 'standard-webhooks' ? 'base64' : 'hex'
  return createHmac('sha256', keyOf(scheme, secret)).update(prefix, 'latin1').update(body).digest(encoding)
}

/** All pairs are compared, also behind one that is equal. */
function sharesOne(expected: readonly string[], presented: readonly string[]): boolean {
  let shared = false
  for (const one of expected) {
    for (const other of presented) shared = equals(one, other) || shared
  }
  return shared
}

/** It takes the same time wherever the two differ; only the length shows. */
function equals(expected: string, presented: string): boolean {
  const [one, other] = [Buffer.from(expected), Buffer.from(presented)]
  return one.length === other.length && timingSafeEqual(one, other)
}

function isStale(sentAt: number | undefined, receivedAt: number, toleranceSeconds: number): boolean {
  if (sentAt === undefined) return false
  return Math.abs(Math.floor(receivedAt / 1000) - sentAt) > toleranceSeconds
}
