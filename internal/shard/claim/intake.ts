/**
 * Reads the inbox in order from the shard's own cursor and gives every item its place: over, known, a member
 * of an outstanding batch, a duplicate, or buffered in its group. Reading twice is harmless.
 *
 * Invariant: until the replay has passed what the inbox held at the claim, every group is held, or a batch
 * could be sealed before older items of its group are seen.
 */
import { type ItemView, type PackHeader, readItems, readPackHeader } from '../../domain/pack.ts'
import { TurnBudget } from '../../runtime/in-turns.ts'
import type { Batches } from '../batches/batches.ts'
import type { BatchesOwner } from '../batches/owner.ts'
import type { LogMessage, LogState } from '../broker.ts'
import { PackVerdict } from '../held/duplicates.ts'
import type { LiveItem } from '../held/live.ts'
import type { NotedItem } from '../held/noted-items.ts'
import { CachedMessage } from '../held/payload-cache.ts'
import type { ReplayState } from '../held/replay.ts'
import type { Position } from '../journal/records.ts'
import type { SeenPacks } from '../journal/seen-packs.ts'
import { type FoldState, isOver } from '../journal/state.ts'
import type { Restoration } from './restoration.ts'

/** Packs older than this are not answered any more: their ingress asked, or gave up. */
const VERDICT_AGE_MS = 60_000
/** Items that get their places in one turn of the event loop, some ms. All of a pack do, and kept ones between them. */
const ITEMS_A_TURN = 2_500

const NO_IDS = [null, null] as const

/** What of an item tells its place. */
type Placed = Pick<ItemView, keyof ItemView & keyof NotedItem>

type Shared = 'clock' | 'payloads' | 'live' | 'groups' | 'duplicates'

export interface IntakeOptions extends Pick<BatchesOwner, Shared> {
  readonly state: FoldState
  readonly replay: ReplayState
  readonly packs: SeenPacks
  readonly batches: Batches
  readonly restoration: Restoration
  /** The inbox at the claim. */
  readonly head: Pick<LogState, 'firstSeq'>
  /** Kept items in ascending order of their positions. */
  readonly kept: Iterator<NotedItem>
  readonly onReplayed: () => void
  /** Messages that should be there are not: `from` up to and without `to`. */
  readonly onGap: (from: number, to: number) => void
}

export class Intake {
  readonly #options: IntakeOptions
  #nextKept: NotedItem | undefined
  readonly #turns: TurnBudget
  #bytesRead = 0
  #stopped = false

  constructor(options: IntakeOptions) {
    this.#options = options
    this.#nextKept = options.kept.next().value
    this.#turns = new TurnBudget(options.clock, ITEMS_A_TURN)
  }

  /** Bytes of packs read since the claim. */
  get bytesRead(): number {
    return this.#bytesRead
  }

  /** Nothing gets a place any more. */
  stop(): void {
    this.#stopped = true
  }

  /** To be called again only once it has resolved. `isOld`: they may not be there any more, and are to be read again. */
  async take(messages: readonly LogMessage[], isOld: () => boolean = () => false): Promise<void> {
    const { replay, head, onGap } = this.#options
    for (const message of messages) {
      if (message.seq < replay.cursor) continue
      if (this.#hasKeptBelow(message.seq, 0)) await this.#placeKeptInTurns(message.seq)
      if (this.#stopped || isOld()) return
      const next = Math.max(replay.cursor, head.firstSeq)
      if (message.seq > next) onGap(next, message.seq)
      const items = this.#takePack(message)
      replay.cursor = message.seq + 1
      this.#bytesRead += message.data.length
      if (this.#turns.spend(items)) await this.#turns.next()
    }
    await this.#endReplay()
  }

  /** The broker has nothing above `seq`: what is missing below was purged. As `take`, it takes turns. */
  async reachedEnd(seq: number): Promise<void> {
    const { replay } = this.#options
    if (seq + 1 > replay.cursor) replay.cursor = seq + 1
    await this.#endReplay()
  }

  async #endReplay(): Promise<void> {
    const { replay, onReplayed } = this.#options
    if (!replay.replaying || replay.cursor <= replay.until) return
    await this.#placeKeptInTurns(Number.POSITIVE_INFINITY)
    if (this.#stopped) return
    replay.replaying = false
    onReplayed()
  }

  /** Answers how many items it holds. */
  #takePack(pack: LogMessage): number {
    const { packs, replay } = this.#options
    const { seq, data } = pack
    const header = readPackHeader(data)
    if (packs.admits(seq, header.packId)) this.#placePack(pack, header)
    else this.#refusePack(pack, header)
    if (seq > (replay.highWater?.seq ?? 0)) replay.highWater = { seq, packId: header.packId }
    return header.count
  }

  #placePack({ seq, at, data }: LogMessage, header: PackHeader): void {
    const { payloads, duplicates, clock, replay } = this.#options
    const message = new CachedMessage('inbox', seq)
    payloads.lend(message, data)
    let verdict: PackVerdict | null = null
    readItems(data, header, (view, index) => {
      if (view.explicit && !verdict) verdict = verdictFor(header, at, clock.now())
      this.#placeKeptBelow(seq, index)
      this.#place({ seq, index }, at, message, view, verdict)
    })
    payloads.offer(message, data, replay.replaying)
    if (verdict) duplicates.settle(verdict)
  }

  /**
   * The pack was appended again behind the broker's memory of its id: its items have their places already. An owner
   * that did not know this may have sealed some of them; those stay members of their batches.
   */
  #refusePack({ seq, at, data }: LogMessage, header: PackHeader): void {
    const { duplicates, payloads, state, replay } = this.#options
    const message = new CachedMessage('inbox', seq)
    readItems(data, header, (view, index) => {
      this.#placeKeptBelow(seq, index)
      const position = { seq, index }
      if (state.sealed.has(seq, index)) this.#place(position, at, message, view, null)
      else if (!isOver(state, position) && !state.kept.has(seq, index))
        duplicates.refuse(position, view.itemId)
    })
    payloads.offer(message, data, replay.replaying)
  }

  /** Kept items stand between those of the inbox in the order of their positions. These stand between those of one pack. */
  #placeKeptBelow(seq: number, index: number): void {
    while (this.#hasKeptBelow(seq, index)) this.#placeNextKept()
  }

  /** Below the pack at `seq`. All groups are held meanwhile. */
  async #placeKeptInTurns(seq: number): Promise<void> {
    while (this.#hasKeptBelow(seq, 0) && !this.#stopped) {
      this.#placeNextKept()
      if (this.#turns.spend(1)) await this.#turns.next()
    }
  }

  #hasKeptBelow(seq: number, index: number): boolean {
    return this.#nextKept !== undefined && isBelow(this.#nextKept, seq, index)
  }

  #placeNextKept(): void {
    const kept = this.#nextKept!
    this.#place(kept, kept.at, kept.message, kept, null)
    this.#nextKept = this.#options.kept.next().value
  }

  #place(
    position: Position,
    at: number,
    message: CachedMessage,
    view: Placed,
    verdict: PackVerdict | null,
  ): void {
    const { state, groups, live, duplicates, restoration, batches, clock } = this.#options
    const { replaying } = this.#options.replay
    // Of what is read for the first time after the replay, the journal can say nothing.
    if (replaying && this.#isKnown(position, message, view, verdict)) return
    const batch = replaying ? state.sealed.get(position.seq, position.index) : undefined
    const token = view.groupToken
    // Of most items nobody asks for these, and each is a text of its own.
    const [itemId, messageId] = view.explicit ? [view.itemId, view.messageId] : NO_IDS
    if (itemId !== null && !batch) {
      // The same item at a second place, as after a repair: the next owner must not find it there without its original.
      if (duplicates.isDropping(itemId)) {
        duplicates.refuse(position, itemId)
        return
      }
      const original = duplicates.original(token, messageId)
      if (original) {
        duplicates.drop({ ...position, itemId }, original, verdict)
        return
      }
    }
    const group = groups.get(token) ?? groups.open(token, view.bufferUid, replaying)
    // It was stored before now, also where the clock of the broker is ahead of this one.
    const now = clock.now()
    const item: LiveItem = {
      seq: position.seq,
      index: position.index,
      at: Math.min(at, now),
      bytes: view.payloadBytes,
      message,
      offset: view.offset,
      size: view.end - view.offset,
      group,
      messageId,
      itemId,
    }
    live.add(item)
    duplicates.add(item)
    if (batch) restoration.member(batch, item)
    else batches.step(group, { kind: 'item', at: now, item })
  }

  /** Whether the item is over, or stands elsewhere: carried by a keep. */
  #isKnown(position: Position, message: CachedMessage, view: Placed, verdict: PackVerdict | null): boolean {
    const { state, live, duplicates } = this.#options
    if (live.get(position)) return true
    if (isOver(state, position)) {
      if (verdict && view.explicit) duplicates.tellAgain(view.itemId, position.index, verdict)
      return true
    }
    return message.source === 'inbox' && state.kept.has(position.seq, position.index)
  }
}

/** null: nobody waits for one, or any more. */
function verdictFor({ packId, replySubject }: PackHeader, at: number, now: number): PackVerdict | null {
  return replySubject && at > now - VERDICT_AGE_MS ? new PackVerdict(packId, replySubject) : null
}

function isBelow(position: Position, seq: number, index: number): boolean {
  return position.seq < seq || (position.seq === seq && position.index < index)
}
