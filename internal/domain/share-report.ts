/**
 * What the owner of a shard tells all ingresses each second: which buffers and which customers hold much of it
 * (docs/architecture/protocol.md, "Back-pressure"). JSON over core NATS. It is as good as its age: a lost report is
 * made up for by the next one, and the decoder returns undefined for bytes that are no report.
 */

export interface ShareReport {
  readonly shard: number
  /** Of the owner's claim: what a stale owner still says is told by it. */
  readonly epoch: number
  /** By uid. */
  readonly buffers: Holdings
  /** By id. An owner of an older version names none. */
  readonly customers: Holdings
}

/** What each of one kind may hold of the shard, and who holds a notable part of that. */
export interface Holdings {
  /** Bytes. */
  readonly limit: number
  /** The largest first. */
  readonly held: readonly Holding[]
}

export interface Holding {
  readonly id: string
  /** Encoded bytes of its items that are not over. */
  readonly bytes: number
}

/** Smaller holdings stay out of a report: this part of the limit. */
export const NOTABLE_SHARE = 0.01
/** So many of a kind stand in one report at most: with 150 bytes each it stays far below any `max_payload`. */
export const MOST_HELD = 1_000

const NO_HOLDINGS: Holdings = { limit: 0, held: [] }

export function sharesSubject(shard: number): string {
  return `shard.${shard}.shares`
}

/** Of all that is held, what belongs into a report. */
export function notable(held: Iterable<Holding>, limit: number): Holdings {
  const large: Holding[] = []
  for (const holding of held) if (holding.bytes >= limit * NOTABLE_SHARE) large.push(holding)
  return { limit, held: large.sort((a, b) => b.bytes - a.bytes).slice(0, MOST_HELD) }
}

/** Buffers stand at the top level, where owners and ingresses of older versions have them. */
export function encodeShareReport({ shard, epoch, buffers, customers }: ShareReport): Buffer {
  return Buffer.from(JSON.stringify({ shard, epoch, ...pairsOf(buffers), customers: pairsOf(customers) }))
}

export function decodeShareReport(bytes: Uint8Array): ShareReport | undefined {
  const fields = parsed(bytes)
  const { shard, epoch } = fields
  const buffers = holdingsOf(fields)
  const customers = fields.customers === undefined ? NO_HOLDINGS : holdingsOf(objectOf(fields.customers))
  if (!isCount(shard) || !isCount(epoch) || buffers === undefined || customers === undefined) return undefined
  return { shard, epoch, buffers, customers }
}

function pairsOf({ limit, held }: Holdings) {
  return { limit, held: held.map(({ id, bytes }) => [id, bytes]) }
}

function holdingsOf({ limit, held }: Record<string, unknown>): Holdings | undefined {
  if (!isCount(limit) || !Array.isArray(held)) return undefined
  const holdings: Holding[] = []
  for (const pair of held as unknown[]) {
    const [id, bytes] = Array.isArray(pair) ? (pair as unknown[]) : []
    if (typeof id !== 'string' || !isCount(bytes)) return undefined
    holdings.push({ id, bytes })
  }
  return { limit, held: holdings }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function parsed(bytes: Uint8Array): Record<string, unknown> {
  try {
    return objectOf(JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()))
  } catch {
    return {}
  }
}

function objectOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
