/**
 * The payload bytes of buffered items: whole messages of the inbox (packs) or of the journal (keeps), as long
 * as one of their items is live. Past the budget, and once it has waited for long, a message's bytes are dropped and read
 * again when a batch needs them (design, section 6), so memory is bounded whatever is buffered, and what waits for hours
 * takes none.
 */
import type { Clock } from '../runtime/clock.ts'
import { Fifo } from '../runtime/fifo.ts'
import type { LogMessage } from './broker.ts'

export type FrameSource = 'inbox' | 'journal'

/** One stored message that holds live items. */
export class Frame {
  readonly source: FrameSource
  readonly seq: number
  /** null: dropped, read again on demand. */
  data: Buffer | null = null
  /** Live items in it. */
  live = 0
  /** Whether its bytes count against the budget: not while they are only lent. */
  counted = false
  /** Monotonic s. */
  keptAt = 0

  constructor(source: FrameSource, seq: number) {
    this.source = source
    this.seq = seq
  }
}

/** A message that must be stored is gone: the broker lost it, or a successor purged it. */
export class MissingFrameError extends Error {
  override readonly name = 'MissingFrameError'
}

export type FrameData = (frame: Frame) => Buffer

export interface FrameItem {
  readonly frame: Frame
}

/** Messages read again are kept for the next batch up to this share of the budget. */
const REREAD_SHARE = 8
/** In one turn of the event loop. */
const GIVEN_UP_AT_ONCE = 5_000
const READS_AT_ONCE = 16
/** Batches that read at once: what they read stands in memory beside the budget until the last of it is there. */
const READERS_AT_ONCE = 8

export interface FramesLimits {
  /** Bytes of frames kept in memory. */
  readonly budget: number
  /** So long a frame is kept, ms; a batch that needs it later reads it again. */
  readonly keepMs: number
}

export class Frames {
  readonly #limits: FramesLimits
  readonly #clock: Clock
  readonly #load: (source: FrameSource, seq: number) => Promise<LogMessage | undefined>
  #resident = 0
  /** Kept since they were read first, oldest first. What came long ago and still waits will wait on: it goes first. */
  readonly #fresh = new Set<Frame>()
  /** Read again past the budget, oldest first. */
  readonly #reread = new Set<Frame>()
  #rereadBytes = 0
  /** Under way: batches that are due together need the same messages. */
  readonly #reading = new Map<Frame, Promise<Buffer | null>>()
  #readers = 0
  readonly #waiting = new Fifo<() => void>()

  constructor(
    limits: FramesLimits,
    clock: Clock,
    load: (source: FrameSource, seq: number) => Promise<LogMessage | undefined>,
  ) {
    this.#limits = limits
    this.#clock = clock
    this.#load = load
  }

  get residentBytes(): number {
    return this.#resident
  }

  /** The bytes of a message while its items get their places: a batch that one of them fills needs no second reading. `offer` must follow in the same turn. */
  lend(frame: Frame, data: Uint8Array): void {
    frame.data ??= asBuffer(data)
  }

  /** The bytes of a message that was just read; kept when an item of it is live, and others give way past the budget. */
  offer(frame: Frame, data: Uint8Array): void {
    if (frame.counted) return
    frame.data = null
    if (frame.live === 0 || data.length > this.#limits.budget) return
    this.#keep(frame, data)
    this.#fresh.add(frame)
    this.#makeRoom()
  }

  /** One item of it is over. */
  release(frame: Frame): void {
    if (--frame.live === 0) this.#drop(frame)
  }

  /** Gives up what has been kept for its time: it probably waits on for long. To be called every second or so. */
  giveUpOld(): void {
    const before = this.#now() - this.#limits.keepMs / 1_000
    let left = GIVEN_UP_AT_ONCE
    for (const kept of [this.#fresh, this.#reread]) {
      for (const oldest of kept) {
        if (oldest.keptAt >= before || left-- <= 0) break
        this.#drop(oldest)
      }
    }
  }

  /** Runs `use` with the bytes of all the items' frames: at once when they are resident, else after reading them. Rejects with MissingFrameError. */
  with<T>(items: readonly FrameItem[], use: (data: FrameData) => T): T | Promise<T> {
    if (items.every(({ frame }) => frame.data)) return use(({ data }) => data!)
    return this.#inTurn(() => this.#readAll(items, use))
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#readers >= READERS_AT_ONCE) await new Promise<void>((resume) => this.#waiting.push(resume))
    else this.#readers++
    try {
      return await work()
    } finally {
      // The place is handed on: it is never free while somebody waits for it.
      const next = this.#waiting.shift()
      if (next) next()
      else this.#readers--
    }
  }

  /** Holds what it has while it reads the rest: the budget may drop frames, and a keep may move items, meanwhile. */
  async #readAll<T>(items: readonly FrameItem[], use: (data: FrameData) => T): Promise<T> {
    const held = new Map<Frame, Buffer>()
    for (;;) {
      const missing = new Set<Frame>()
      for (const { frame } of items) {
        if (frame.data) held.set(frame, frame.data)
        else if (!held.has(frame)) missing.add(frame)
      }
      // In the same turn: in the next one a keep may have moved an item.
      if (missing.size === 0) return use((frame) => held.get(frame)!)
      for (const [frame, data] of await this.#readAgain([...missing])) if (data) held.set(frame, data)
    }
  }

  async #readAgain(frames: Frame[]): Promise<Map<Frame, Buffer | null>> {
    const read = new Map<Frame, Buffer | null>()
    const next = frames.values()
    const worker = async () => {
      for (const frame of next) read.set(frame, await this.#read(frame))
    }
    await Promise.all(Array.from({ length: Math.min(READS_AT_ONCE, frames.length) }, worker))
    return read
  }

  /** null: purged, because its items moved on while it was read. */
  #read(frame: Frame): Promise<Buffer | null> {
    const under = this.#reading.get(frame)
    if (under) return under
    const reading = this.#readOnce(frame).finally(() => this.#reading.delete(frame))
    this.#reading.set(frame, reading)
    return reading
  }

  async #readOnce(frame: Frame): Promise<Buffer | null> {
    if (frame.data) return frame.data
    const message = await this.#load(frame.source, frame.seq)
    if (!message && frame.live === 0) return null
    if (!message) throw new MissingFrameError(`${frame.source} message ${frame.seq} is gone`)
    const data = asBuffer(message.data)
    if (frame.live > 0 && !frame.data) this.#cache(frame, data)
    return data
  }

  #cache(frame: Frame, data: Buffer): void {
    this.#keep(frame, data)
    if (this.#resident <= this.#limits.budget) {
      this.#fresh.add(frame)
      return
    }
    this.#reread.add(frame)
    this.#rereadBytes += data.length
    for (const oldest of this.#reread) {
      if (this.#rereadBytes <= this.#limits.budget / REREAD_SHARE) break
      this.#drop(oldest)
    }
    this.#makeRoom()
  }

  #makeRoom(): void {
    for (const oldest of this.#fresh) {
      if (this.#resident <= this.#limits.budget) break
      this.#drop(oldest)
    }
  }

  #keep(frame: Frame, data: Uint8Array): void {
    frame.data = asBuffer(data)
    frame.counted = true
    frame.keptAt = this.#now()
    this.#resident += data.length
  }

  /** Whole seconds: a small integer takes no memory of its own. */
  #now(): number {
    return Math.floor(this.#clock.monotonic() / 1_000)
  }

  #drop(frame: Frame): void {
    if (frame.data && frame.counted) {
      this.#resident -= frame.data.length
      this.#fresh.delete(frame)
      if (this.#reread.delete(frame)) this.#rereadBytes -= frame.data.length
    }
    frame.counted = false
    frame.data = null
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
}
