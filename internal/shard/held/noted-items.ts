/**
 * What a claim notes of kept items while it reads the journal (docs/architecture/protocol.md, "Memory"): their places, and nothing
 * that refers to the bytes of a commit, so the memory of a claim does not grow with payloads. A note stands in the state, in place of
 * what the fold put there, and goes with its item.
 */
import { type ItemView, readItem } from '../../domain/pack.ts'
import type { Clock } from '../../runtime/clock.ts'
import { TurnBudget } from '../../runtime/in-turns.ts'
import type { Log } from '../broker.ts'
import { decodeCommit } from '../journal/codec.ts'
import type { StoredCommit } from '../journal/fold.ts'
import type { Journal } from '../journal/journal.ts'
import type { KeptAt } from '../journal/kept-places.ts'
import { proven } from '../journal/proven.ts'
import { keptItems, type Position } from '../journal/records.ts'
import type { FoldState } from '../journal/state.ts'
import { lostMessages } from '../lost-tail.ts'
import { messageAt } from '../message-at.ts'
import { CachedMessage } from './payload-cache.ts'

/** Items that are listed in one turn of the event loop: some ms. */
const ITEMS_A_TURN = 2_500
/** Past so many, uids of buffers are noted anew, and then stand in memory twice. */
const MOST_BUFFERS = 10_000

/** Shared by items that stand together. */
interface KeptGroup {
  readonly token: string
  readonly bufferUid: string
}

/** A kept item without its bytes. */
export class NotedItem implements Position, KeptAt {
  readonly seq: number
  readonly index: number
  /** Among the kept items of its commit. */
  readonly ordinal: number
  /** The broker's time of the pack, Unix ms. */
  readonly at: number
  /** Its commit, shared by all items of it. */
  readonly message: CachedMessage
  /** [offset, end) is its encoding in the commit. */
  readonly offset: number
  readonly end: number
  readonly payloadBytes: number
  readonly #group: KeptGroup
  /** The sender gave the message id. Both ids are empty when not. */
  readonly explicit: boolean
  readonly itemId: string
  readonly messageId: string

  constructor(
    { seq, index }: Position,
    ordinal: number,
    at: number,
    message: CachedMessage,
    group: KeptGroup,
    view: ItemView,
  ) {
    this.seq = seq
    this.index = index
    this.ordinal = ordinal
    this.at = at
    this.message = message
    this.offset = view.offset
    this.end = view.end
    this.payloadBytes = view.payloadBytes
    this.#group = group
    this.explicit = view.explicit
    this.itemId = view.explicit ? view.itemId : ''
    this.messageId = view.explicit ? view.messageId : ''
  }

  get commit(): number {
    return this.message.seq
  }

  get groupToken(): string {
    return this.#group.token
  }

  get bufferUid(): string {
    return this.#group.bufferUid
  }
}

export class Notes {
  #group: KeptGroup = { token: '', bufferUid: '' }
  readonly #uids = new Map<string, string>()

  /**
   * Notes what a commit keeps, as far as the state names it there. `state`: behind the commit, or behind a later one. Answers how many
   * items were noted.
   */
  take({ seq, commit }: StoredCommit, data: Uint8Array, { kept }: FoldState): number {
    const message = new CachedMessage('journal', seq)
    let noted = 0
    keptItems(commit).forEach(({ position, at, item }, ordinal) => {
      const named = kept.get(position.seq, position.index)
      if (named?.commit !== seq || named.ordinal !== ordinal) return
      const view = readItem(data, item.byteOffset - data.byteOffset)
      kept.replace(position, new NotedItem(position, ordinal, at, message, this.#groupOf(view), view))
      noted++
    })
    return noted
  }

  /** Items of a group stand together in a keep. */
  #groupOf({ groupToken: token, bufferUid }: ItemView): KeptGroup {
    if (token !== this.#group.token) {
      if (this.#uids.size >= MOST_BUFFERS) this.#uids.clear()
      const uid = this.#uids.get(bufferUid) ?? bufferUid
      this.#uids.set(uid, uid)
      this.#group = { token, bufferUid: uid }
    }
    return this.#group
  }
}

export interface ListingOptions {
  readonly shard: number
  readonly log: Log
  readonly clock: Clock
  /** Of the claim. */
  readonly journal: Pick<Journal, 'prove'>
}

/**
 * The items that the state names, in ascending order of their positions; the state holds no notes then. What was not noted is read by
 * its commit. Rejects with LostTailError when it is missing there, too, with a proof before and one behind that answer. Nothing may
 * change the state meanwhile.
 */
export async function listKept(state: FoldState, options: ListingOptions): Promise<NotedItem[]> {
  const notes = new Notes()
  const turns = new TurnBudget(options.clock, ITEMS_A_TURN)
  const items: NotedItem[] = []
  for (const [position, at] of state.kept.sorted()) {
    const item = at instanceof NotedItem ? at : await readMissing(position, at, notes, state, options)
    state.kept.replace(position, { commit: item.commit, ordinal: item.ordinal })
    items.push(item)
    if (turns.spend(1)) await turns.next()
  }
  return items
}

function readMissing(
  { seq, index }: Position,
  { commit }: KeptAt,
  notes: Notes,
  state: FoldState,
  { shard, log, journal }: ListingOptions,
): Promise<NotedItem> {
  return proven(journal, async () => {
    const message = await messageAt(log, commit)
    if (message) notes.take({ seq: commit, commit: decodeCommit(message.data) }, message.data, state)
    const found = state.kept.get(seq, index)
    if (found instanceof NotedItem) return found
    throw lostMessages(shard, `journal commit ${commit} holds kept items and is gone`)
  })
}
