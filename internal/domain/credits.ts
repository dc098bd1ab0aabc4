/** What an ingest costs (docs/reference/api.md, "Limits"). */

/** Bytes that one credit pays for. */
export const BYTES_PER_CREDIT = 1024

/** Bytes of a parsed payload's JSON serialisation in UTF-8, without blanks: what credits are charged for. */
export function serializedBytes(payload: unknown): number {
  return Buffer.byteLength(JSON.stringify(payload))
}

/** Credits for a parsed payload: one a started KiB of its JSON serialisation in UTF-8, at least 1. */
export function creditsFor(payload: unknown): number {
  return creditsForBytes(serializedBytes(payload))
}

/** Bodies up to this size may be written as wastefully as their sender likes, bytes. */
export const PADDED_BYTES = 16_384
/** A larger body has at most so many times the bytes that it is charged for. */
export const PADDED_RATIO = 4

/**
 * Whether a body of `bytes` bytes is mostly blanks, escapes and repeated members: it takes storage for what it came as
 * and pays for its serialisation of `serialized` bytes.
 */
export function isPadded(bytes: number, serialized: number): boolean {
  return bytes > PADDED_BYTES && bytes > PADDED_RATIO * serialized
}

/** Credits for a serialisation of `bytes` bytes. */
export function creditsForBytes(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / BYTES_PER_CREDIT))
}
