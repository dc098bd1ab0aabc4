/**
 * Every item that the inbox took, where it stands for ever, and which of them share an explicit message id in one
 * group: what a duplicate is, told from outside.
 */
import type { ItemView } from '../../../internal/domain/pack.ts'
import type { Position } from '../../../internal/shard/journal/records.ts'

export type End = 'done' | 'dead' | 'drop' | 'discard'

export interface StoredItem {
  readonly itemId: string
  readonly bufferUid: string
  readonly groupToken: string
  readonly messageId: string
  readonly explicit: boolean
  readonly position: Position
  /** The broker's time of its pack, Unix ms. */
  readonly at: number
  /** The last sequence of the journal when it came. */
  readonly committed: number
  /** The same item stood further up already: an append that was stored twice. */
  readonly again: boolean
  /** Explicit ones before it with its message id in its group, in the order of the log. */
  readonly older: readonly StoredItem[]
  /** An owner took it for no duplicate, whatever was on its way meanwhile: it was sealed or kept, or no older one can be live. */
  original: boolean
  /** How it ended, and the sequence of the commit that says so. */
  end: { how: End; seq: number; at: number } | null
  /** The owner of the time told its sender that it is new. */
  toldNew: boolean
}

export class Items {
  readonly #byPosition = new Map<string, StoredItem>()
  readonly #byId = new Map<string, StoredItem>()
  /** Explicit ones, by group and message id. */
  readonly #sharing = new Map<string, StoredItem[]>()

  /** `committed`: the last sequence of the journal; by then every owner of the time knows what is over below it. */
  store(seq: number, index: number, at: number, view: ItemView, committed: number): StoredItem {
    const { itemId, bufferUid, groupToken, explicit } = view
    const messageId = explicit ? view.messageId : itemId
    const again = this.#byId.has(itemId)
    const sharing = this.#sharing.get(`${groupToken} ${messageId}`) ?? []
    const older = explicit ? [...sharing] : []
    const original = explicit && older.every(({ end }) => end !== null && end.seq < committed)
    const position = { seq, index }
    const named = {
      itemId,
      bufferUid,
      groupToken,
      messageId,
      explicit,
      position,
      at,
      committed,
      again,
      older,
    }
    const item: StoredItem = { ...named, original, end: null, toldNew: false }
    this.#byPosition.set(placeOf(position), item)
    if (again) return item
    this.#byId.set(itemId, item)
    if (explicit) this.#sharing.set(`${groupToken} ${messageId}`, [...sharing, item])
    return item
  }

  /** Nothing was stored. */
  forget(): void {
    this.#byPosition.clear()
    this.#byId.clear()
    this.#sharing.clear()
  }

  at(position: Position): StoredItem | undefined {
    return this.#byPosition.get(placeOf(position))
  }

  /** Where the first append put it. */
  get(itemId: string): StoredItem | undefined {
    return this.#byId.get(itemId)
  }
}

/** The one that it must have been dropped for, had it been read now. */
export function liveOriginalOf({ older, again }: StoredItem): StoredItem | undefined {
  return again ? undefined : older.find(({ end, original }) => end === null && original)
}

function placeOf({ seq, index }: Position): string {
  return `${seq}/${index}`
}
