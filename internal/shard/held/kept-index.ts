/**
 * Where kept items stand, noted while the journal is read at a claim (docs/architecture/protocol.md, "Memory"). Nothing in it
 * refers to the bytes of a commit, so the memory of a claim does not grow with payloads.
 *
 * Invariant: of a position the last keep that was read is noted. While the fold is exact, so is what is noted, but for items
 * that are over: they go soon, a few with each keep.
 */
import { type ItemView, readItem } from '../../domain/pack.ts'
import type { Clock } from '../../runtime/clock.ts'
import { sleep } from '../../runtime/sleep.ts'
import type { Log } from '../broker.ts'
import { decodeCommit } from '../journal/codec.ts'
import type { StoredCommit } from '../journal/fold.ts'
import type { Journal } from '../journal/journal.ts'
import type { KeptAt } from '../journal/kept-places.ts'
import { PositionMap } from '../journal/positions.ts'
import type { Position } from '../journal/records.ts'
import type { FoldState } from '../journal/state.ts'
import { lostMessages } from '../lost-tail.ts'
import { CachedMessage } from './payload-cache.ts'

/** Looked at for each that is noted. What is over then never outweighs what is live for long. */
const LOOKED_AT = 3
/** Items that are noted or listed in one turn of the event loop: some ms. */
const ITEMS_A_TURN = 2_500

interface KeptGroup {
  readonly token: string
  readonly bufferUid: string
  /** Of the index. */
  items: number
}

/** A kept item without its bytes. What its group says stands there once for all of them. */
export class IndexedItem implements Position {
  readonly seq: number
  readonly index: number
  /** The broker's time of the pack, Unix ms. */
  readonly at: number
  /** Its commit, shared by all items of it. */
  readonly message: CachedMessage
  /** [offset, end) is its encoding in the commit. */
  readonly offset: number
  readonly end: number
  readonly payloadBytes: number
  readonly group: KeptGroup
  /** The sender gave the message id. Both ids are empty when not. */
  readonly explicit: boolean
  readonly itemId: string
  readonly messageId: string

  constructor(
    { seq, index }: Position,
    at: number,
    message: CachedMessage,
    group: KeptGroup,
    view: ItemView,
  ) {
    this.seq = seq
    this.index = index
    this.at = at
    this.message = message
    this.offset = view.offset
    this.end = view.end
    this.payloadBytes = view.payloadBytes
    this.group = group
    this.explicit = view.explicit
    this.itemId = view.explicit ? view.itemId : ''
    this.messageId = view.explicit ? view.messageId : ''
  }

  get groupToken(): string {
    return this.group.token
  }

  get bufferUid(): string {
    return this.group.bufferUid
  }
}

export class KeptIndex {
  readonly #clock: Clock
  readonly #items = new PositionMap<IndexedItem>()
  readonly #groups = new Map<string, KeptGroup>()
  readonly #uids = new Map<string, string>()
  #round = this.#items.values()
  /** Items of this turn. */
  #inTurn = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Noted items, with some that are over. */
  get size(): number {
    return this.#items.size
  }

  /** Notes what a commit keeps, in the order of the commits. `state`: behind it, or behind a later one. */
  async take({ seq, commit }: StoredCommit, data: Uint8Array, state: FoldState): Promise<void> {
    for (const record of commit.records) {
      if (record.type !== 'keep') continue
      const message = new CachedMessage('journal', seq)
      for (const { position, at, item } of record.items) {
        if (!isNamed(state, position, seq)) continue
        this.#note(position, at, message, readItem(data, item.byteOffset - data.byteOffset))
      }
      this.#forgetSome(state, record.items.length * LOOKED_AT)
      await this.turn(record.items.length)
    }
  }

  /** So many items were gone through: others get the event loop now and then. */
  async turn(items: number): Promise<void> {
    this.#inTurn += items
    if (this.#inTurn < ITEMS_A_TURN) return
    this.#inTurn = 0
    await sleep(this.#clock, 0)
  }

  /** The item where `commit` keeps it. */
  get({ seq, index }: Position, commit: number): IndexedItem | undefined {
    const item = this.#items.get(seq, index)
    return item?.message.seq === commit ? item : undefined
  }

  remove({ seq, index }: Position): void {
    const item = this.#items.get(seq, index)
    if (!item) return
    this.#items.delete(seq, index)
    if (--item.group.items === 0) this.#groups.delete(item.group.token)
  }

  #note(position: Position, at: number, message: CachedMessage, view: ItemView): void {
    this.remove(position)
    const group = this.#groupOf(view)
    group.items++
    this.#items.set(position.seq, position.index, new IndexedItem(position, at, message, group, view))
  }

  #groupOf(view: ItemView): KeptGroup {
    const token = view.groupToken
    const known = this.#groups.get(token)
    if (known) return known
    const { bufferUid } = view
    const uid = this.#uids.get(bufferUid) ?? bufferUid
    this.#uids.set(uid, uid)
    const group = { token, bufferUid: uid, items: 0 }
    this.#groups.set(token, group)
    return group
  }

  /** Round after round. */
  #forgetSome(state: FoldState, count: number): void {
    for (let left = count; left > 0; left--) {
      const { value: item } = this.#round.next()
      if (item === undefined) {
        this.#round = this.#items.values()
        return
      }
      if (!isNamed(state, item, item.message.seq)) this.remove(item)
    }
  }
}

function isNamed({ kept }: FoldState, { seq, index }: Position, commit: number): boolean {
  return kept.get(seq, index)?.commit === commit
}

export interface ListingOptions {
  readonly shard: number
  readonly log: Log
  /** Of the claim. */
  readonly journal: Pick<Journal, 'prove' | 'look'>
}

/**
 * The items that the state names, in ascending order of their positions; the index is empty then. What it lacks is read by its
 * commit. Rejects with LostTailError when it is missing there, too, by an answer as new as a proof and with one more proof
 * behind it. Nothing may change the state meanwhile.
 */
export async function listKept(
  index: KeptIndex,
  state: FoldState,
  options: ListingOptions,
): Promise<IndexedItem[]> {
  const items: IndexedItem[] = []
  for (const [position, at] of state.kept.sorted()) {
    const item = index.get(position, at.commit) ?? (await readMissing(index, state, position, at, options))
    index.remove(position)
    items.push(item)
    await index.turn(1)
  }
  return items
}

async function readMissing(
  index: KeptIndex,
  state: FoldState,
  position: Position,
  { commit }: KeptAt,
  { shard, log, journal }: ListingOptions,
): Promise<IndexedItem> {
  const read = async () => {
    const message = await log.get(commit)
    if (message) await index.take({ seq: commit, commit: decodeCommit(message.data) }, message.data, state)
    return index.get(position, commit)
  }
  const found = await read()
  if (found) return found
  await journal.prove()
  // Around the reading: a server that was behind tells so, before or afterwards.
  await journal.look()
  const again = await read()
  if (again) return again
  await journal.look()
  await journal.prove()
  throw lostMessages(shard, `journal commit ${commit} holds kept items and is gone`)
}
