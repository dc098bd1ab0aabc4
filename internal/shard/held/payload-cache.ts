/**
 * The payload bytes of buffered items: whole messages of the inbox (packs) or of the journal (keeps), as long
 * as one of their items is live. Past the budget, and once it has waited for long, a message's bytes are dropped and read
 * again when a batch needs them (docs/architecture/protocol.md, "Memory"), so memory is bounded whatever is buffered,
 * and what waits for hours takes none.
 */
import type { Clock } from '../../runtime/clock.ts'
import { Semaphore } from '../../runtime/semaphore.ts'
import type { LogMessage } from '../broker.ts'
import type { ShardLimits } from '../options.ts'

export type MessageLog = 'inbox' | 'journal'

/** One stored message that holds live items. */
export class CachedMessage {
  readonly source: MessageLog
  readonly seq: number
  /** null: dropped, read again on demand. */
  data: Buffer | null = null
  /** Live items in it. */
  live = 0
  /** Whether its bytes count against the budget: not while they are only lent. */
  counted = false
  /** Monotonic s. */
  keptAt = 0

  constructor(source: MessageLog, seq: number) {
    this.source = source
    this.seq = seq
  }
}

/** A message that must be stored is gone: a server has a later one, and a proof followed, so the broker lost it. */
export class MissingMessageError extends Error {
  override readonly name = 'MissingMessageError'
}

/** A stored message. undefined: it is gone, and nothing in it is needed any more. Rejects with MissingMessageError. */
export type ReadMessage = (
  source: MessageLog,
  seq: number,
  isNeeded: () => boolean,
) => Promise<LogMessage | undefined>

export type BytesOf = (message: CachedMessage) => Buffer

export interface Stored {
  readonly message: CachedMessage
}

/** Messages read again are kept for the next batch up to this share of the budget. */
const REREAD_SHARE = 8
/** In one turn of the event loop. */
const GIVEN_UP_AT_ONCE = 5_000
const READS_AT_ONCE = 16
/** Batches that read at once: what they read stands in memory beside the budget until the last of it is there. */
const READERS_AT_ONCE = 8

type PayloadLimits = Pick<ShardLimits, 'payloadBudget' | 'payloadMs'>

export class PayloadCache {
  readonly #limits: PayloadLimits
  readonly #clock: Clock
  readonly #stored: ReadMessage
  #resident = 0
  /** Kept since they were read first, oldest first. What came long ago and still waits will wait on: it goes first. */
  readonly #fresh = new Set<CachedMessage>()
  /** Read again past the budget, oldest first. */
  readonly #reread = new Set<CachedMessage>()
  #rereadBytes = 0
  /** Under way: batches that are due together need the same messages. */
  readonly #reading = new Map<CachedMessage, Promise<Buffer | null>>()
  readonly #readers = new Semaphore(READERS_AT_ONCE)

  constructor(limits: PayloadLimits, clock: Clock, stored: ReadMessage) {
    this.#limits = limits
    this.#clock = clock
    this.#stored = stored
  }

  get residentBytes(): number {
    return this.#resident
  }

  /** The bytes of a message while its items get their places: a batch that one of them fills needs no second reading. `offer` must follow in the same turn. */
  lend(message: CachedMessage, data: Uint8Array): void {
    message.data ??= asBuffer(data)
  }

  /**
   * The bytes of a message that was just read; kept when an item of it is live. Past the budget the oldest bytes give way, but in a
   * replay the new ones do: what was read first is due first. And only a collection of the whole heap frees bytes that were kept for a
   * while. V8 would begin one after some 30 MB, and do a part of it at each allocation of a buffer: a turn has a hundred of those.
   */
  offer(message: CachedMessage, data: Uint8Array, replaying = false): void {
    if (message.counted) return
    message.data = null
    if (message.live === 0 || data.length > this.#limits.payloadBudget) return
    if (replaying && this.#resident + data.length > this.#limits.payloadBudget) return
    this.#keep(message, data)
    this.#fresh.add(message)
    this.#makeSpace()
  }

  /** The bytes of a stored message. null: it is gone, and nothing in it is needed any more. Rejects with MissingMessageError. */
  async read(source: MessageLog, seq: number, isNeeded: () => boolean): Promise<Buffer | null> {
    const message = await this.#stored(source, seq, isNeeded)
    return message ? asBuffer(message.data) : null
  }

  /** One item of it is over. */
  release(message: CachedMessage): void {
    if (--message.live === 0) this.#drop(message)
  }

  /** Gives up what has been kept for its time: it probably waits on for long. To be called every second or so. */
  giveUpOld(): void {
    const before = this.#now() - this.#limits.payloadMs / 1_000
    let left = GIVEN_UP_AT_ONCE
    for (const kept of [this.#fresh, this.#reread]) {
      for (const oldest of kept) {
        if (oldest.keptAt >= before || left-- <= 0) break
        this.#drop(oldest)
      }
    }
  }

  /** Runs `use` with the bytes of all the items' messages: at once when they are resident, else after reading them. Rejects with MissingMessageError. */
  with<T>(items: readonly Stored[], use: (data: BytesOf) => T): T | Promise<T> {
    if (items.every(({ message }) => message.data)) return use(({ data }) => data!)
    return this.#inTurn(() => this.#readAll(items, use))
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    await this.#readers.acquire()
    try {
      return await work()
    } finally {
      this.#readers.release()
    }
  }

  /** Holds what it has while it reads the rest: the budget may drop messages, and a keep may move items, meanwhile. */
  async #readAll<T>(items: readonly Stored[], use: (data: BytesOf) => T): Promise<T> {
    const held = new Map<CachedMessage, Buffer>()
    for (;;) {
      const missing = new Set<CachedMessage>()
      for (const { message } of items) {
        if (message.data) held.set(message, message.data)
        else if (!held.has(message)) missing.add(message)
      }
      // In the same turn: in the next one a keep may have moved an item.
      if (missing.size === 0) return use((message) => held.get(message)!)
      for (const [message, data] of await this.#readAgain([...missing])) if (data) held.set(message, data)
    }
  }

  async #readAgain(payloads: CachedMessage[]): Promise<Map<CachedMessage, Buffer | null>> {
    const read = new Map<CachedMessage, Buffer | null>()
    const next = payloads.values()
    const worker = async () => {
      for (const message of next) read.set(message, await this.#read(message))
    }
    await Promise.all(Array.from({ length: Math.min(READS_AT_ONCE, payloads.length) }, worker))
    return read
  }

  /** null: purged, because its items moved on while it was read. */
  #read(message: CachedMessage): Promise<Buffer | null> {
    const under = this.#reading.get(message)
    if (under) return under
    const reading = this.#readOnce(message).finally(() => this.#reading.delete(message))
    this.#reading.set(message, reading)
    return reading
  }

  async #readOnce(message: CachedMessage): Promise<Buffer | null> {
    if (message.data) return message.data
    const data = await this.read(message.source, message.seq, () => message.live > 0)
    if (data === null) return null
    if (message.live > 0 && !message.data) this.#cache(message, data)
    return data
  }

  #cache(message: CachedMessage, data: Buffer): void {
    this.#keep(message, data)
    if (this.#resident <= this.#limits.payloadBudget) {
      this.#fresh.add(message)
      return
    }
    this.#reread.add(message)
    this.#rereadBytes += data.length
    for (const oldest of this.#reread) {
      if (this.#rereadBytes <= this.#limits.payloadBudget / REREAD_SHARE) break
      this.#drop(oldest)
    }
    this.#makeSpace()
  }

  #makeSpace(): void {
    for (const oldest of this.#fresh) {
      if (this.#resident <= this.#limits.payloadBudget) break
      this.#drop(oldest)
    }
  }

  #keep(message: CachedMessage, data: Uint8Array): void {
    message.data = asBuffer(data)
    message.counted = true
    message.keptAt = this.#now()
    this.#resident += data.length
  }

  /** Whole seconds: a small integer takes no memory of its own. */
  #now(): number {
    return Math.floor(this.#clock.monotonic() / 1_000)
  }

  #drop(message: CachedMessage): void {
    if (message.data && message.counted) {
      this.#resident -= message.data.length
      this.#fresh.delete(message)
      if (this.#reread.delete(message)) this.#rereadBytes -= message.data.length
    }
    message.counted = false
    message.data = null
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}
