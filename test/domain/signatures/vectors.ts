/** Signatures that others made (api/vectors/source-signatures.json). */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type SignatureScheme, signatureHeaderOf } from '../../../internal/domain/signatures/schemes.ts'
import {
  judgeSignature,
  type SignatureRule,
  type SignatureVerdict,
} from '../../../internal/domain/signatures/verify.ts'

export interface Vector {
  readonly name: string
  readonly scheme: SignatureScheme
  readonly secret: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly sentAt?: number
  readonly origin: 'published' | 'computed'
  readonly source: string
  readonly note: string
}

const FILE = join(import.meta.dirname, '..', '..', '..', 'api', 'vectors', 'source-signatures.json')

export const vectors: readonly Vector[] = JSON.parse(readFileSync(FILE, 'utf8')).vectors

/** The first of the scheme. */
export function vectorOf(scheme: SignatureScheme): Vector {
  return vectors.find((vector) => vector.scheme === scheme)!
}

/** What changes of a vector before it is judged. */
export interface Change {
  readonly rule?: Partial<SignatureRule>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Seconds between the time stamp and the arrival. */
  readonly later?: number
}

export function judged(vector: Vector, { rule, headers, body, later = 0 }: Change = {}): SignatureVerdict {
  const { scheme, secret, sentAt = 0 } = vector
  const signatureHeader = signatureHeaderOf({ scheme, signatureHeader: 'x-webhook-signature' })
  const sent = new Map(Object.entries({ ...vector.headers, ...headers }))
  return judgeSignature(
    { scheme, signatureHeader, signingSecret: secret, ...rule },
    {
      header: (name) => sent.get(name.toLowerCase()),
      body: Buffer.from(body ?? vector.body),
      receivedAt: (sentAt + later) * 1000,
    },
  )
}
