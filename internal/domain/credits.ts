/** What an ingest costs (docs/reference/api.md, "Limits"). */

/** Bytes that one credit pays for. */
export const BYTES_PER_CREDIT = 1024

/** Credits for a parsed payload: one a started KiB of its JSON serialisation in UTF-8, at least 1. */
export function creditsFor(payload: unknown): number {
  return creditsForBytes(Buffer.byteLength(JSON.stringify(payload)))
}

/** Credits for a serialisation of `bytes` bytes. */
export function creditsForBytes(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / BYTES_PER_CREDIT))
}
