/**
 * What the owner of a shard tells all ingresses each second: which buffers hold much of it
 * (docs/architecture/protocol.md, "Back-pressure"). JSON over core NATS. It is as good as its age: a lost report is
 * made up for by the next one, and the decoder returns undefined for bytes that are no report.
 */

export interface ShareReport {
  readonly shard: number
  /** Of the owner's claim: what a stale owner still says is told by it. */
  readonly epoch: number
  /** What one buffer may hold of the shard, bytes. */
  readonly limit: number
  /** Buffers that hold a notable part of it, the largest first. */
  readonly held: readonly HeldShare[]
}

export interface HeldShare {
  readonly bufferUid: string
  /** Encoded bytes of its items that are not over. */
  readonly bytes: number
}

/** Smaller holdings stay out of a report: this part of the limit. */
export const NOTABLE_SHARE = 0.01
/** So many buffers stand in one report at most: with 50 bytes each it stays far below any `max_payload`. */
export const MOST_HELD = 1_000

export function sharesSubject(shard: number): string {
  return `shard.${shard}.shares`
}

/** Of all that is held, what belongs into a report. */
export function notable(held: Iterable<HeldShare>, limit: number): HeldShare[] {
  const large: HeldShare[] = []
  for (const share of held) if (share.bytes >= limit * NOTABLE_SHARE) large.push(share)
  return large.sort((a, b) => b.bytes - a.bytes).slice(0, MOST_HELD)
}

export function encodeShareReport({ shard, epoch, limit, held }: ShareReport): Buffer {
  const pairs = held.map(({ bufferUid, bytes }) => [bufferUid, bytes])
  return Buffer.from(JSON.stringify({ shard, epoch, limit, held: pairs }))
}

export function decodeShareReport(bytes: Uint8Array): ShareReport | undefined {
  const { shard, epoch, limit, held } = fieldsOf(bytes)
  if (!isCount(shard) || !isCount(epoch) || !isCount(limit) || !Array.isArray(held)) return undefined
  const shares: HeldShare[] = []
  for (const pair of held as unknown[]) {
    const [bufferUid, size] = Array.isArray(pair) ? (pair as unknown[]) : []
    if (typeof bufferUid !== 'string' || !isCount(size)) return undefined
    shares.push({ bufferUid, bytes: size })
  }
  return { shard, epoch, limit, held: shares }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function fieldsOf(bytes: Uint8Array): Record<string, unknown> {
  try {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
