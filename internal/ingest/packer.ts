/**
 * The inbox as ingest sees it: packs by group commit (docs/architecture/protocol.md, "Packs"). One append in flight a
 * shard; what arrives meanwhile forms the next pack, so that packs grow with load and an item at rest is a pack
 * alone.
 *
 * Invariant: an item's request is answered exactly once, and positively only after the PubAck of its pack.
 */

import { bufferToken } from '../domain/group.ts'
import { encodePack, itemSizeBound } from '../domain/pack.ts'
import { PackIds } from '../domain/pack-id.ts'
import type { Clock, Randomness } from '../runtime/clock.ts'
import { sleep } from '../runtime/sleep.ts'
import { GroupNames } from './group-names.ts'
import {
  type Inbox,
  InboxUnavailableError,
  type InboxUnavailableReason,
  type Messages,
  type NewItem,
  type PackAppendAnswer,
  type PackLog,
  type PackTelemetry,
  type Stored,
} from './ports.ts'
import { type Entry, ShardQueue } from './shard-queue.ts'
import { Verdicts } from './verdicts.ts'

const MAX_PACK_BYTES = 256 * 1024
/** All tries of a pack, and the waiting before them, ms. */
const RETRIES_MS = 10_000
/** One try, ms. */
const ATTEMPT_MS = 2_000
const LEAST_PAUSE_MS = 50
const MOST_PAUSE_MS = 500
/**
 * Packs leave this long after the last ones at the earliest, ms: an item at rest waits for nothing, and where items come
 * closer together than that, fewer and larger packs cost each of them less.
 */
export const GATHER_MS = 1.5
/** An append that takes longer no longer counts against the cap: one dead shard must not hold up the others. */
const SLOT_MS = 100

export const DEFAULT_MAX_IN_FLIGHT = 4
const DEFAULT_MAX_WAITING_BYTES = 64 * 1024 * 1024

export interface PackerOptions {
  shards: number
  /** The inbox of a shard. */
  logOf: (shard: number) => PackLog
  messages: Messages
  clock: Clock
  randomness: Randomness
  telemetry: PackTelemetry
  /** Hears of each pack that the broker acknowledged. */
  onStored?: (shard: number, seq: number, packId: string) => void
  /** Hears of the end of each pack, and whether the broker said what became of it. */
  onEnded?: (shard: number, answered: boolean) => void
  /** `group`: a pack of one group has a subject of its own; `shard`: one subject a shard. */
  subjects: 'group' | 'shard'
  /** Appends in flight over all shards; default 4. Fewer make larger packs. */
  maxInFlight?: number
  /** Bytes of items that wait here for their PubAck, at most; default 64 MB. */
  maxWaitingBytes?: number
  /** Runs a task once the event loop has handed out all input that is at hand; default `setImmediate`. */
  afterTurn?: (task: () => void) => void
}

interface Pack {
  readonly queue: ShardQueue
  readonly entries: readonly Entry[]
  readonly id: string
  readonly frame: Buffer
  readonly subject: string
  readonly startedAt: number
}

export class Packer implements Inbox {
  readonly #options: PackerOptions
  readonly #verdicts: Verdicts
  readonly #queues: ShardQueue[]
  readonly #names: GroupNames
  readonly #ids: PackIds
  readonly #maxInFlight: number
  /** Queues whose append counts against the cap, with its start, oldest first. */
  readonly #slots = new Map<ShardQueue, number>()
  /** Queues that have something to send, in the order of their asking. */
  readonly #hungry = new Set<ShardQueue>()
  readonly #afterTurn: (task: () => void) => void
  #asked = false
  /** When the last packs left. */
  #leftAt = Number.NEGATIVE_INFINITY
  #waitingBytes = 0
  #closed = false
  #drained: (() => void) | undefined
  #cancelRelief: (() => void) | undefined

  constructor(options: PackerOptions) {
    this.#options = options
    this.#verdicts = new Verdicts(options)
    this.#queues = Array.from({ length: options.shards }, (_, shard) => new ShardQueue(shard))
    this.#names = new GroupNames(options.shards)
    this.#ids = new PackIds((size) => options.randomness.bytes(size))
    this.#maxInFlight = options.maxInFlight ?? DEFAULT_MAX_IN_FLIGHT
    this.#afterTurn = options.afterTurn ?? ((task) => void setImmediate(task))
  }

  append(item: NewItem): Promise<Stored> {
    if (this.#closed) return Promise.reject(unavailable('this node shuts down', 'closed'))
    const { maxWaitingBytes = DEFAULT_MAX_WAITING_BYTES, clock } = this.#options
    if (this.#waitingBytes > maxWaitingBytes)
      return Promise.reject(unavailable('too much waits', 'overloaded'))
    const { token, shard } = this.#names.of(item.bufferUid, item.groupKey)
    const queue = this.#queues[shard]!
    const bytes = itemSizeBound(item)
    this.#waitingBytes += bytes
    return new Promise((resolve, reject) => {
      queue.push({ item: { ...item, groupToken: token }, bytes, since: clock.monotonic(), resolve, reject })
      if (!queue.flying) this.#ask(queue)
    })
  }

  findOriginal(bufferUid: string, groupKey: string, messageId: string): Promise<string | null | undefined> {
    const { token, shard } = this.#names.of(bufferUid, groupKey)
    return this.#verdicts.findOriginal(shard, token, messageId)
  }

  /** Takes nothing more; resolves when all that was taken is answered, and its credits are certain or were waited for. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#waitingBytes > 0) {
      await new Promise<void>((resolve) => {
        this.#drained = resolve
      })
    }
    await this.#verdicts.close()
  }

  /**
   * Nothing leaves before the turn of the event loop ends: all requests that it has read by then share the
   * packs, and at rest the turn ends at once.
   */
  #ask(queue: ShardQueue): void {
    this.#hungry.add(queue)
    if (this.#asked) return
    this.#asked = true
    const feed = () => {
      this.#asked = false
      this.#feed()
    }
    const { clock } = this.#options
    const pauseMs = this.#leftAt + GATHER_MS - clock.monotonic()
    if (pauseMs > 0) clock.after(pauseMs, feed)
    else this.#afterTurn(feed)
  }

  /** Slow appends give their slots back. */
  #relieve(): void {
    this.#cancelRelief = undefined
    const now = this.#options.clock.monotonic()
    for (const [queue, startedAt] of this.#slots) {
      if (startedAt + SLOT_MS <= now) this.#slots.delete(queue)
    }
    this.#feed()
  }

  #feed(): void {
    for (const queue of this.#hungry) {
      if (this.#slots.size >= this.#maxInFlight) {
        this.#cancelRelief ??= this.#options.clock.after(SLOT_MS, () => this.#relieve())
        return
      }
      this.#hungry.delete(queue)
      this.#send(queue)
    }
  }

  #send(queue: ShardQueue): void {
    const startedAt = this.#options.clock.monotonic()
    queue.flying = true
    this.#slots.set(queue, startedAt)
    const entries = queue.takePack(MAX_PACK_BYTES)
    this.#leftAt = startedAt
    void this.#fly(queue, entries, startedAt)
  }

  async #fly(queue: ShardQueue, entries: readonly Entry[], startedAt: number): Promise<void> {
    try {
      await this.#store(this.#pack(queue, entries, startedAt))
    } catch (error) {
      for (const { reject } of entries) reject(error)
    }
    this.#landed(queue, entries)
  }

  #landed(queue: ShardQueue, entries: readonly Entry[]): void {
    for (const { bytes } of entries) this.#waitingBytes -= bytes
    queue.flying = false
    this.#slots.delete(queue)
    // Behind those that wait for a slot, or a busy shard would starve them.
    if (!queue.isEmpty) this.#ask(queue)
    else if (!this.#asked) this.#feed()
    if (this.#waitingBytes === 0) this.#drained?.()
  }

  #pack(queue: ShardQueue, entries: readonly Entry[], startedAt: number): Pack {
    const idBytes = this.#ids.next()
    const id = idBytes.toString('base64url')
    const awaited = entries.flatMap(({ item: { explicit, itemId }, resolve }, index) =>
      explicit ? [{ index, itemId, settle: resolve }] : [],
    )
    if (awaited.length > 0) this.#verdicts.expect(id, queue.shard, awaited)
    const replySubject = awaited.length > 0 ? this.#verdicts.replySubject : null
    const frame = encodePack(
      idBytes,
      replySubject,
      entries.map(({ item }) => item),
    )
    return { queue, entries, id, frame, subject: this.#subjectOf(queue, entries), startedAt }
  }

  #subjectOf(queue: ShardQueue, entries: readonly Entry[]): string {
    const first = entries[0]?.item
    const oneGroup = entries.every(({ item }) => item.groupToken === first?.groupToken)
    if (first === undefined || this.#options.subjects === 'shard' || !oneGroup)
      return `items.${queue.shard}.mixed`
    return `items.${queue.shard}.${bufferToken(first.bufferUid)}.${first.groupToken}`
  }

  /** Rejects with what its requests are to be told when the pack is not stored, or not known to be. */
  async #store(pack: Pack): Promise<void> {
    const { clock, telemetry, onStored, onEnded } = this.#options
    const { answer, attempts } = await this.#untilAnswered(pack)
    onEnded?.(pack.queue.shard, isDefinite(answer))
    if (answer.kind !== 'stored') {
      this.#verdicts.forget(pack.id)
      throw refusalOf(answer)
    }
    for (const { item, resolve } of pack.entries) if (!item.explicit) resolve({ duplicateOf: null })
    this.#verdicts.stored(pack.id, answer.seq)
    onStored?.(pack.queue.shard, answer.seq, pack.id)
    const ms = clock.monotonic() - pack.startedAt
    telemetry.batch({
      shard: pack.queue.shard,
      items: pack.entries.length,
      bytes: pack.frame.length,
      ms,
      attempts,
    })
  }

  /** Again under the same id while nobody knows whether it is stored: within 10 s, and once in any case. */
  async #untilAnswered(pack: Pack): Promise<{ answer: PackAppendAnswer; attempts: number }> {
    const { clock, randomness, logOf } = this.#options
    const since = pack.entries[0]?.since ?? pack.startedAt
    const deadline = Math.max(since + RETRIES_MS, pack.startedAt + ATTEMPT_MS)
    const { subject, id: msgId } = pack
    for (let attempts = 1, pauseMs = LEAST_PAUSE_MS; ; attempts++) {
      const timeoutMs = Math.min(ATTEMPT_MS, deadline - clock.monotonic())
      const answer = await logOf(pack.queue.shard).append(pack.frame, { subject, msgId, timeoutMs })
      const pause = answer.kind === 'in-process' ? LEAST_PAUSE_MS : pauseMs * (0.5 + randomness.fraction())
      const over = clock.monotonic() + pause >= deadline
      if (over || isDefinite(answer)) return { answer, attempts }
      await sleep(clock, pause)
      pauseMs = Math.min(pauseMs * 2, MOST_PAUSE_MS)
    }
  }
}

/** Whether the broker has said what became of the pack. */
function isDefinite({ kind }: PackAppendAnswer): boolean {
  return kind !== 'unknown' && kind !== 'in-process'
}

function refusalOf(answer: PackAppendAnswer): InboxUnavailableError {
  if (answer.kind === 'full') return unavailable('the inbox is full', 'full')
  const detail = answer.kind === 'unknown' ? answer.error : answer.kind
  return unavailable(`the append was not acknowledged: ${detail}`, 'unanswered')
}

function unavailable(text: string, reason: InboxUnavailableReason): InboxUnavailableError {
  return new InboxUnavailableError(text, reason)
}
