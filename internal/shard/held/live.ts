/**
 * What is buffered: every item of the shard that is not over, by its position, and the groups they wait in.
 *
 * Invariant: an item stands here until the record that ends it is committed, so the lowest inbox position
 * here bounds the horizon.
 */
import type { GroupState } from '../../group/machine.ts'
import type { GroupItem } from '../../group/model.ts'
import { PositionMap } from '../journal/positions.ts'
import type { Position } from '../journal/records.ts'
import type { BufferState } from './buffer-state.ts'
import type { CachedMessage, PayloadCache } from './payload-cache.ts'

export interface LiveItem extends GroupItem, Position {
  /** Where its bytes stand: its pack, or the keep that carried it. */
  message: CachedMessage
  /** Of its encoding in the message. */
  offset: number
  /** Of its encoding, bytes. */
  readonly size: number
  readonly group: OpenGroup
  /** Set when the sender gave it: only then can it have duplicates. */
  readonly messageId: string | null
  /** Set with `messageId`. */
  readonly itemId: string | null
}

/** A group with something buffered or in flight. */
export interface OpenGroup {
  /** Group token: groupId and groupHash. */
  readonly id: string
  readonly buffer: BufferState
  machine: GroupState<LiveItem>
  /** The armed wake, ms; Infinity when none is. */
  wakeAt: number
  /** Its place among all wakes; -1 when none is armed. */
  wakeIndex: number
  /** Outstanding batches of the last owner that are not given to the machine yet. */
  restoring: number
}

export class LiveItems {
  readonly #payloads: PayloadCache
  readonly #inInbox = new PositionMap<LiveItem>()
  readonly #kept = new PositionMap<LiveItem>()
  #highest = 0
  #payloadBytes = 0
  #inboxBytes = 0
  #keptBytes = 0

  constructor(payloads: PayloadCache) {
    this.#payloads = payloads
  }

  get count(): number {
    return this.#inInbox.size + this.#kept.size
  }

  /** Payload bytes of all. */
  get payloadBytes(): number {
    return this.#payloadBytes
  }

  /** Encoded bytes of the items that stand in the inbox only. */
  get inboxBytes(): number {
    return this.#inboxBytes
  }

  /** Encoded bytes of kept items. */
  get keptBytes(): number {
    return this.#keptBytes
  }

  /** The lowest inbox sequence with an item that is live and not kept; undefined when there is none. */
  get lowestInboxSeq(): number | undefined {
    return this.#inInbox.lowestSeq
  }

  get({ seq, index }: Position): LiveItem | undefined {
    return this.#inInbox.get(seq, index) ?? this.#kept.get(seq, index)
  }

  /** Items of the inbox, in the order they were read: while it is walked they may come and go. */
  inInbox(): Iterable<LiveItem> {
    return this.#inInbox.values()
  }

  /** Kept items, in the order in which they were read once, as `inInbox`. */
  kept(): Iterable<LiveItem> {
    return this.#kept.values()
  }

  add(item: LiveItem): void {
    if (item.message.source === 'journal') {
      this.#kept.set(item.seq, item.index, item)
      this.#keptBytes += item.size
    } else {
      if (item.seq < this.#highest) throw new Error(`inbox item ${item.seq} was read after ${this.#highest}`)
      this.#highest = item.seq
      this.#inInbox.set(item.seq, item.index, item)
      this.#inboxBytes += item.size
    }
    item.message.live++
    this.#payloadBytes += item.bytes
    item.group.buffer.count(item, 1)
  }

  remove(item: LiveItem): void {
    if (this.#inInbox.delete(item.seq, item.index)) this.#inboxBytes -= item.size
    else if (this.#kept.delete(item.seq, item.index)) this.#keptBytes -= item.size
    else throw new Error(`item ${item.seq}/${item.index} left twice`)
    this.#payloadBytes -= item.bytes
    item.group.buffer.count(item, -1)
    this.#payloads.release(item.message)
  }

  /** A committed keep carries it now. */
  move(item: LiveItem, message: CachedMessage, offset: number): void {
    if (this.#inInbox.delete(item.seq, item.index)) {
      this.#inboxBytes -= item.size
      this.#kept.set(item.seq, item.index, item)
      this.#keptBytes += item.size
    }
    this.#payloads.release(item.message)
    item.message = message
    item.offset = offset
    message.live++
  }
}
