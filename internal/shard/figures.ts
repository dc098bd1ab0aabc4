/** What a running shard holds at one moment, for whoever runs the installation (`GET /shards`). */

import type { LiveItem } from './held/live.ts'
import type { BatchName } from './journal/batch-name.ts'
import type { ShardParts } from './parts.ts'

/** Buffers that are named at most. */
const NAMED_BUFFERS = 10
/** Live items that are looked at for them at most: some milliseconds. */
const LOOKED_AT = 50_000

interface OldestOfBuffer {
  readonly bufferUid: string
  /** null: its record is not known yet. */
  readonly bufferId: string | null
  /** Since the broker stored its oldest live item, ms. */
  readonly ageMs: number
}

interface OutstandingBatch extends BatchName {
  readonly bufferUid: string
  /** Of the attempt that runs or comes next, from 1. */
  readonly attempt: number
  /** When that one may begin, Unix ms; 0 for the first. */
  readonly nextAt: number
  /** Since its first item was received, ms. */
  readonly ageMs: number
}

export interface ShardFigures {
  /** Next inbox sequence to be read. */
  readonly cursor: number
  /** Every inbox position below it is over, or kept. */
  readonly horizon: number
  /** Of the last own commit. */
  readonly journalSeq: number
  readonly items: number
  readonly payloadBytes: number
  /** Oldest first, ten buffers at most. */
  readonly oldest: readonly OldestOfBuffer[]
  /** false: not all live items were looked at, an older one may be among the others. */
  readonly oldestComplete: boolean
  /** Sealed batches that are not settled. `oldest`: by the order of their seals. */
  readonly outstanding: { readonly count: number; readonly oldest: OutstandingBatch | null }
}

/** `now`: Unix ms. Its cost is bounded whatever the shard holds. */
export function figuresOf(parts: ShardParts, now: number): ShardFigures {
  const { live, replay, state, journal } = parts
  const { oldest, complete } = oldestItems(parts)
  return {
    cursor: replay.cursor,
    horizon: state.horizon,
    journalSeq: journal.lastSeq,
    items: live.count,
    payloadBytes: live.payloadBytes,
    oldest: oldest.slice(0, NAMED_BUFFERS).map(({ group, at }) => ({
      bufferUid: group.buffer.uid,
      bufferId: group.buffer.record?.buffer.bufferId ?? null,
      ageMs: Math.max(0, now - at),
    })),
    oldestComplete: complete,
    outstanding: { count: state.batches.size, oldest: oldestBatch(parts, now) },
  }
}

/** One item a buffer, oldest first. Both kinds of items are in the order of their times. */
function oldestItems({ live }: ShardParts): { oldest: LiveItem[]; complete: boolean } {
  const found = new Map<string, LiveItem>()
  const kept = lookThrough(live.kept(), found, NAMED_BUFFERS)
  const inbox = lookThrough(live.inInbox(), found, found.size + NAMED_BUFFERS)
  return { oldest: [...found.values()].sort((a, b) => a.at - b.at), complete: kept && inbox }
}

/** Until `enough` buffers are found. false: it was given up before. */
function lookThrough(items: Iterable<LiveItem>, found: Map<string, LiveItem>, enough: number): boolean {
  let left = LOOKED_AT
  for (const item of items) {
    if (found.size >= enough) return true
    if (left-- === 0) return false
    const { uid } = item.group.buffer
    const known = found.get(uid)
    if (known === undefined || item.at < known.at) found.set(uid, item)
  }
  return true
}

function oldestBatch({ state }: ShardParts, now: number): OutstandingBatch | null {
  for (const { groupId, version, seal, attempt, nextAt } of state.batches.values()) {
    const ageMs = Math.max(0, now - seal.firstItemAt)
    return { groupId, version, bufferUid: seal.bufferUid, attempt, nextAt, ageMs }
  }
  return null
}
