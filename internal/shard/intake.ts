/**
 * Reads the inbox in order from the shard's own cursor and gives every item its place: over, known, a member
 * of an outstanding batch, a twin, or buffered in its group. Reading twice is harmless.
 *
 * Invariant: until the replay has passed what the inbox held at the claim, every group is held, or a batch
 * could be sealed before older items of its group are seen.
 */
import { decodePack, type ItemView, readItem, readPackHeader } from '../domain/pack.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Batches } from './batches.ts'
import type { LogMessage, LogState } from './broker.ts'
import { type FoldState, isOver } from './fold.ts'
import { Frame, type Frames } from './frames.ts'
import type { Groups } from './groups.ts'
import type { LiveItem, LiveItems, OpenGroup } from './live.ts'
import type { HighWater, Position } from './records.ts'
import type { Restoration } from './restoration.ts'
import { PackVerdict, type Twins } from './twins.ts'

/** Packs older than this are not answered any more: their ingress asked, or gave up. */
const VERDICT_AGE_MS = 60_000

/** A live item that stands in the journal, read from its keep. */
export interface KeptEntry {
  readonly position: Position
  readonly at: number
  readonly frame: Frame
  readonly data: Uint8Array
  readonly offset: number
}

export interface IntakeOptions {
  readonly clock: Clock
  readonly state: FoldState
  readonly frames: Frames
  readonly live: LiveItems
  readonly groups: Groups
  readonly twins: Twins
  readonly batches: Batches
  readonly restoration: Restoration
  /** The inbox at the claim. */
  readonly head: Pick<LogState, 'firstSeq' | 'lastSeq'>
  /** Kept items in ascending order of their positions. */
  readonly kept: Iterator<KeptEntry>
  readonly onReplayed: () => void
  /** Messages that should be there are not: `from` up to and without `to`. */
  readonly onGap: (from: number, to: number) => void
}

export class Intake {
  readonly #options: IntakeOptions
  #cursor: number
  #lastAt = 0
  #highWater: HighWater | null
  #replaying = true
  #nextKept: KeptEntry | undefined
  #bytesRead = 0

  constructor(options: IntakeOptions) {
    this.#options = options
    this.#cursor = options.state.horizon
    this.#highWater = options.state.highWater
    this.#nextKept = options.kept.next().value
  }

  /** Next inbox sequence to be read. */
  get cursor(): number {
    return this.#cursor
  }

  /** The broker's time of the last pack read, Unix ms. */
  get lastAt(): number {
    return this.#lastAt
  }

  get highWater(): HighWater | null {
    return this.#highWater
  }

  get replaying(): boolean {
    return this.#replaying
  }

  /** Bytes of packs read since the claim. */
  get bytesRead(): number {
    return this.#bytesRead
  }

  /** To be called once after construction: an empty inbox has nothing to replay. */
  begin(): void {
    this.#endReplay()
  }

  take(messages: readonly LogMessage[]): void {
    for (const message of messages) {
      if (message.seq < this.#cursor) continue
      const next = Math.max(this.#cursor, this.#options.head.firstSeq)
      if (message.seq > next) this.#options.onGap(next, message.seq)
      this.#takePack(message)
      this.#cursor = message.seq + 1
      this.#lastAt = message.at
      this.#bytesRead += message.data.length
    }
    this.#endReplay()
  }

  /** The broker has nothing above `seq`: what is missing below was purged. */
  reachedEnd(seq: number): void {
    if (seq + 1 > this.#cursor) this.#cursor = seq + 1
    this.#endReplay()
  }

  #endReplay(): void {
    if (!this.#replaying || this.#cursor <= this.#options.head.lastSeq) return
    this.#placeKeptBelow(Number.POSITIVE_INFINITY, 0)
    this.#replaying = false
    this.#options.onReplayed()
  }

  #takePack({ seq, at, data }: LogMessage): void {
    const { frames, twins, clock } = this.#options
    const frame = new Frame('inbox', seq)
    frames.lend(frame, data)
    let verdict: PackVerdict | null = null
    const header = decodePack(data, (view, index) => {
      if (view.explicit && !verdict) verdict = this.#verdictFor(data, at, clock.now())
      this.#placeKeptBelow(seq, index)
      this.#place({ seq, index }, at, frame, view, verdict)
    })
    frames.offer(frame, data)
    if (seq > (this.#highWater?.seq ?? 0)) this.#highWater = { seq, packId: header.packId }
    if (verdict) twins.settle(verdict)
  }

  #verdictFor(data: Uint8Array, at: number, now: number): PackVerdict | null {
    const { packId, replySubject } = readPackHeader(data)
    return replySubject && at > now - VERDICT_AGE_MS ? new PackVerdict(packId, replySubject) : null
  }

  /** Kept items stand between those of the inbox in the order of their positions. */
  #placeKeptBelow(seq: number, index: number): void {
    for (let kept = this.#nextKept; kept && isBelow(kept.position, seq, index); kept = this.#nextKept) {
      const view = readItem(kept.data, kept.offset)
      this.#place(kept.position, kept.at, kept.frame, view, null)
      this.#options.frames.offer(kept.frame, kept.data)
      this.#nextKept = this.#options.kept.next().value
    }
  }

  #place(position: Position, at: number, frame: Frame, view: ItemView, verdict: PackVerdict | null): void {
    const { state, groups, live, twins, restoration, batches, clock } = this.#options
    // Of what is read for the first time after the replay, the journal can say nothing.
    if (this.#replaying && this.#isKnown(position, frame, view, verdict)) return
    const batch = this.#replaying ? state.sealed.get(position.seq, position.index) : undefined
    const token = view.groupToken
    const given = view.explicit ? { itemId: view.itemId, messageId: view.messageId } : null
    if (given !== null && !batch) {
      const { itemId, messageId } = given
      if (twins.isDropping(itemId)) return
      const original = twins.original(token, messageId)
      if (original) {
        twins.drop({ ...position, itemId }, original, verdict)
        return
      }
    }
    const group = groups.get(token) ?? groups.open(token, view.bufferUid, this.#replaying)
    const item = newItem(position, at, frame, view, group, given)
    live.add(item)
    twins.add(item)
    if (batch) restoration.member(batch, item)
    else batches.step(group, { kind: 'item', at: clock.now(), item })
  }

  /** Whether the item is over, or stands elsewhere: carried by a keep. */
  #isKnown(position: Position, frame: Frame, view: ItemView, verdict: PackVerdict | null): boolean {
    const { state, live, twins } = this.#options
    if (live.get(position)) return true
    if (isOver(state, position)) {
      if (verdict && view.explicit) twins.tellAgain(view.itemId, position.index, verdict)
      return true
    }
    return frame.source === 'inbox' && state.kept.has(position.seq, position.index)
  }
}

function isBelow(position: Position, seq: number, index: number): boolean {
  return position.seq < seq || (position.seq === seq && position.index < index)
}

function newItem(
  { seq, index }: Position,
  at: number,
  frame: Frame,
  view: ItemView,
  group: OpenGroup,
  given: { itemId: string; messageId: string } | null,
): LiveItem {
  return {
    seq,
    index,
    at,
    bytes: view.payloadBytes,
    frame,
    offset: view.offset,
    size: view.end - view.offset,
    group,
    messageId: given?.messageId ?? null,
    itemId: given?.itemId ?? null,
  }
}
