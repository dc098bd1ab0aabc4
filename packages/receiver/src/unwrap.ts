import { type Batch, type BatchOptions, parseBatch } from './batch.ts'
import type { HeadersLike } from './headers.ts'
import { type Secrets, type SignatureOptions, verify } from './signature.ts'

export type UnwrapOptions = SignatureOptions & BatchOptions

/** None of the secrets signed these bytes. */
export class SignatureError extends Error {
  override readonly name = 'SignatureError'
}

/**
 * The batch of a request that one of the secrets signed. Throws a SignatureError when none did, before anything reads the
 * body, and a BatchError when the body is no batch. `Payload` is what the caller expects; nothing checks it.
 */
export function unwrap<Payload = unknown>(
  rawBody: Uint8Array | string,
  headers: HeadersLike,
  secrets: Secrets,
  options: UnwrapOptions = {},
): Batch<Payload> {
  if (!verify(rawBody, headers, secrets, options))
    throw new SignatureError('the signature is missing or wrong')
  return parseBatch<Payload>(rawBody, headers, options)
}
