/**
 * The state of a shard that its journal yields (`fold.ts`).
 *
 * Invariant: a position is over when it stands below the horizon or among `finished`, unless it is kept.
 */
import type { BatchName } from './batch-name.ts'
import { KeptPlaces } from './kept-places.ts'
import { PositionMap, PositionSet } from './positions.ts'
import type { HighWater, Position, SealRecord } from './records.ts'
import { SeenPacks } from './seen-packs.ts'

/** A sealed batch that is not settled. */
export interface OpenBatch extends BatchName {
  readonly seal: SealRecord
  /** Attempts begun or about to begin, as far as they are committed; at least 1. */
  attempt: number
  /** When that attempt may begin, Unix ms; 0 for the first. */
  nextAt: number
}

export interface Drop extends Position {
  readonly itemId: string
  readonly originalItemId: string
  /** Time of the dropping commit, Unix ms; earlier where a later commit showed that its clock was ahead. */
  readonly at: number
}

export interface FoldState {
  /** Every inbox position below it is over, or kept. */
  horizon: number
  highWater: HighWater | null
  finished: PositionSet
  kept: KeptPlaces
  /** By `batchKey`, in the order of their seals. */
  batches: Map<string, OpenBatch>
  /** Positions of open batches. */
  sealed: PositionMap<OpenBatch>
  /** The last minute's drops, oldest first, by item id. */
  drops: Map<string, Drop>
  /** The latest time of a drop, Unix ms; 0: none. */
  newestDropAt: number
  /** Packs that must not be taken again. */
  seen: SeenPacks
  /** Open batches that an owner released while in flight, by `batchKey`, with their deadlines (Unix ms). */
  released: Map<string, number>
  epoch: number
  /** Boot UUID of the last claimant. */
  boot: string | null
}

export function emptyState(): FoldState {
  return {
    horizon: 0,
    highWater: null,
    finished: new PositionSet(),
    kept: new KeptPlaces(),
    batches: new Map(),
    sealed: new PositionMap(),
    drops: new Map(),
    newestDropAt: 0,
    seen: new SeenPacks(),
    released: new Map(),
    epoch: 0,
    boot: null,
  }
}

export function isOver(state: FoldState, { seq, index }: Position): boolean {
  return (seq < state.horizon || state.finished.has(seq, index)) && !state.kept.has(seq, index)
}

/** The highest inbox sequence that it acts on; 0: none. Whatever stands above it means what the inbox holds there. */
export function highestNamed(state: FoldState): number {
  let named = Math.max(state.horizon - 1, state.highWater?.seq ?? 0)
  for (const { seq } of state.drops.values()) named = Math.max(named, seq)
  return Math.max(named, state.finished.highestSeq, state.kept.highestSeq, state.sealed.highestSeq)
}
