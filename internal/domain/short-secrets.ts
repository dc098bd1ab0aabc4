/** Secrets that whoever sees one signature may find by trying (docs/reference/buffers.md, "Source verification"). */
import { mapSecrets, secretAt } from './buffer-secrets.ts'
import type { BufferConfig } from './model.ts'
import { DEFAULT_SCHEME } from './signatures/schemes.ts'
import { keyOf } from './signatures/secrets.ts'

/** A shorter key of an HMAC is told in the log, bytes. */
const LEAST_SECRET_BYTES = 16

/** The fields of secrets that sign or verify, are shorter, and were not there before. `stored`: the buffer before. */
export function shortSecrets(config: BufferConfig, stored?: BufferConfig): string[] {
  const scheme = config.sourceVerification?.scheme ?? DEFAULT_SCHEME
  const fields: string[] = []
  mapSecrets(config, (secret, path) => {
    const isNew = stored === undefined || secretAt(stored, path) !== secret
    // Values of headers are no keys of an HMAC, and are often no secrets.
    if (path[1] === 'headers' || !isNew) return secret
    const key = path[0] === 'sourceVerification' ? keyOf(scheme, secret) : secret
    if (Buffer.byteLength(key) < LEAST_SECRET_BYTES) fields.push(path.join('.'))
    return secret
  })
  return fields
}
