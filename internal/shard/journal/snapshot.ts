/**
 * A shard's state as bytes: the parts of a snapshot joined. Without payloads: a kept item is named by its
 * commit, so the journal may be purged only behind the oldest commit still named.
 *
 * All of it goes in slices, so that none holds the event loop. A list is written as slices, each with its length, and ends with
 * an empty one.
 */
import { atOnce } from '../../runtime/in-turns.ts'
import { ByteReader, ByteWriter, CorruptBytesError } from './bytes.ts'
import { codecOf, highWater, positions } from './codec.ts'
import { addBatch } from './fold.ts'
import type { KeptAt } from './kept-places.ts'
import type { Position, SeenRecord } from './records.ts'
import { slicesOf } from './slices.ts'
import { type Drop, emptyState, type FoldState, type OpenBatch } from './state.ts'
import { type Codec, integer, list, optional, struct, text, uuid } from './struct.ts'

const VERSION = 4

/** Entries of a slice: positions, kept items, items of batches, drops. One batch with more goes alone. */
const SLICE = 2_500

type Head = Pick<FoldState, 'horizon' | 'highWater' | 'epoch' | 'boot'>

interface Released {
  /** As `batchKey`. */
  readonly key: string
  readonly deadline: number
}

/** A state as it was: what happens to the state afterwards does not change it. */
export interface FrozenState extends Head, Pick<FoldState, 'finished' | 'kept'> {
  readonly batches: readonly OpenBatch[]
  readonly drops: readonly Drop[]
  readonly released: readonly Released[]
  readonly seen: SeenRecord
}

/** Takes a few ms at most: positions are shared with the state until it changes them. */
export function freezeState(state: FoldState): FrozenState {
  const { horizon, highWater, epoch, boot } = state
  return {
    horizon,
    highWater,
    epoch,
    boot,
    finished: state.finished.copy(),
    kept: state.kept.copy(),
    batches: Array.from(state.batches.values(), (batch) => ({ ...batch })),
    drops: [...state.drops.values()],
    released: Array.from(state.released, ([key, deadline]) => ({ key, deadline })),
    seen: state.seen.record(),
  }
}

const head = struct<Head>({
  horizon: integer,
  highWater: optional(highWater),
  epoch: integer,
  boot: optional(uuid),
})

const keptPlaces: Codec<readonly [Position, KeptAt][]> = {
  write(out, kept) {
    positions.write(
      out,
      kept.map(([position]) => position),
    )
    let previous = 0
    for (const [, { commit, ordinal }] of kept) {
      out.difference(commit - previous)
      out.integer(ordinal)
      previous = commit
    }
  },
  read(input) {
    let commit = 0
    return positions.read(input).map((position) => {
      commit += input.difference()
      return [position, { commit, ordinal: input.integer() }]
    })
  },
}

const batches = list(
  struct<Omit<OpenBatch, 'groupId'>>({
    version: integer,
    attempt: integer,
    nextAt: integer,
    seal: codecOf('seal'),
  }),
)

const drops = list(
  struct<Drop>({ seq: integer, index: integer, itemId: uuid, originalItemId: uuid, at: integer }),
)

const released = list(struct<Released>({ key: text, deadline: integer }))

const seen = codecOf('seen')

/** The slices joined are the snapshot. */
export function* encodeSnapshot(state: FrozenState): Generator<Buffer, void> {
  yield Buffer.of(VERSION)
  yield written(head, state)
  yield* slices(positions, state.finished.sorted())
  yield* slices(keptPlaces, state.kept.sorted())
  yield* slices(batches, state.batches, ({ seal }) => seal.positions.length)
  yield* slices(drops, state.drops)
  yield* slices(released, state.released)
  yield written(seen, state.seen)
}

function written<T>(codec: Codec<T>, value: T): Buffer {
  const out = new ByteWriter(16 * 1024)
  codec.write(out, value)
  return out.view()
}

function* slices<T>(
  codec: Codec<readonly T[]>,
  entries: Iterable<T>,
  weightOf?: (entry: T) => number,
): Generator<Buffer, void> {
  for (const slice of slicesOf(entries, SLICE, weightOf)) yield written(codec, slice)
  yield written(codec, [])
}

/** As `encodeSnapshot`, in this turn. */
export function writeSnapshot(state: FoldState): Buffer {
  return Buffer.concat([...encodeSnapshot(freezeState(state))])
}

/** Each yield ends a slice. @throws CorruptBytesError */
export function* decodeSnapshot(bytes: Uint8Array): Generator<undefined, FoldState> {
  const input = new ByteReader(bytes)
  const version = input.byte()
  if (version !== VERSION) throw new CorruptBytesError(`snapshot of version ${version}`)
  const state = Object.assign(emptyState(), head.read(input))
  yield* each(positions, input, ({ seq, index }) => state.finished.add(seq, index))
  yield* each(keptPlaces, input, ([{ seq, index }, at]) => state.kept.set(seq, index, at))
  yield* each(batches, input, (batch) => addBatch(state, { groupId: batch.seal.groupId, ...batch }))
  yield* each(drops, input, (drop) => {
    state.drops.set(drop.itemId, drop)
    state.newestDropAt = Math.max(state.newestDropAt, drop.at)
  })
  yield* each(released, input, ({ key, deadline }) => state.released.set(key, deadline))
  state.seen.apply(seen.read(input))
  return state
}

/** What `slices` wrote. */
function* each<T>(
  codec: Codec<readonly T[]>,
  input: ByteReader,
  take: (entry: T) => void,
): Generator<undefined, void> {
  for (let slice = codec.read(input); slice.length > 0; slice = codec.read(input)) {
    for (const entry of slice) take(entry)
    yield
  }
}

/** As `decodeSnapshot`, in this turn. @throws CorruptBytesError */
export function readSnapshot(bytes: Uint8Array): FoldState {
  return atOnce(decodeSnapshot(bytes))
}
