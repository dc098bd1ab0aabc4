/**
 * Making the streams of an installation (docs/architecture/protocol.md, "Logs"): as large as the broker has room for,
 * and all shards alike, also when several nodes make them at once.
 */

import type { JetStreamManager, StreamInfo } from 'nats'
import type { Clock } from '../../runtime/clock.ts'
import { messageOf } from '../../runtime/thrown.ts'
import { UnusableBrokerError } from '../connection.ts'
import type { StreamName } from '../names.ts'
import { divideStore, inboxBeside, type LogKind, type LogSizes, sizesFor } from './log-sizes.ts'
import { streamConfig } from './stream-config.ts'
import {
  addStream,
  codeOf,
  lookUp,
  mayPass,
  NAME_IN_USE,
  pause,
  tooLarge,
  UnsettledError,
} from './stream-lookup.ts'
import { Room } from './stream-room.ts'

export interface StreamOptions {
  clock: Clock
  shards: number
  replicas: number
  /** In front of stream names and subjects; default empty. */
  prefix?: string
  /** Bytes that all logs together may take of the broker's store; default: what its account allows. */
  storeBytes?: number
}

/** A stream that an installation has. */
export interface Wanted {
  name: StreamName
  shard: number
  kind: LogKind
}

/** One that is there. */
export interface Standing extends Wanted {
  info: StreamInfo
}

/** Member of a stream's metadata: the count of shards that the logs were made for. */
export const SHARDS_KEY = 'penstock.shards'

/** When neither configuration nor account says what the store holds, bytes; halved until it fits. */
const ASSUMED_STORE_BYTES = 64 * 1024 ** 3

/** Room that a stream gave back is free for others by then, ms. */
const FREED_MS = 3_000

export class StreamMaking {
  readonly #manager: JetStreamManager
  readonly #options: StreamOptions

  constructor(manager: JetStreamManager, options: StreamOptions) {
    this.#manager = manager
    this.#options = options
  }

  /**
   * Makes them, as large as the broker has room for, or as those that are there: `kept`. Rejects with UnusableBrokerError when
   * it has none, and with UnsettledError while another node makes them.
   */
  async create(missing: readonly Wanted[], kept: readonly Standing[]): Promise<void> {
    if (missing.length === 0) return
    const sizes = sizesOf(kept)
    const room = this.#options.replicas > 1 ? new Room(this.#manager, this.#options) : undefined
    const storeBytes = await this.#granted(room, missing, sizes)
    try {
      if (sizes !== undefined && (await this.#createSized(missing, sizes, new Set())) === undefined) return
      await this.#create(missing, storeBytes)
    } finally {
      await room?.release()
    }
  }

  /** Bytes of the store that the logs may have; takes the lock where there is one. */
  #granted(room: Room | undefined, missing: readonly Wanted[], sizes: LogSizes | undefined): Promise<number> {
    if (room === undefined) return this.#storeBytes()
    return sizes === undefined ? this.#measured(room, missing) : this.#held(room)
  }

  async #create(missing: readonly Wanted[], from: number): Promise<void> {
    const made = new Set<string>()
    let [storeBytes, refusal]: [number, string | undefined] = [from, undefined]
    while (missing.length > made.size) {
      const sizes = divideStore(storeBytes, this.#options.shards)
      if (sizes === undefined) throw this.#noRoom(storeBytes, refusal)
      refusal = await this.#createSized(missing, sizes, made)
      storeBytes = Math.floor(storeBytes / 2)
      if (refusal === undefined) return
    }
  }

  /** With the lock: bytes of the store of which all that is missing fits at once, halved as often as it takes. */
  async #measured(room: Room, missing: readonly Wanted[]): Promise<number> {
    let storeBytes = await this.#storeBytes()
    for (let refusal: string | undefined; ; storeBytes = Math.floor(storeBytes / 2)) {
      const sizes = divideStore(storeBytes, this.#options.shards)
      if (sizes === undefined) throw this.#noRoom(storeBytes, refusal)
      refusal = await room.take(missing.reduce((sum, { kind }) => sum + sizes[kind], 0))
      if (refusal === undefined) return storeBytes
      // Made since this node looked: they take the room.
      if (await this.#info(missing[0]!.name.stream))
        throw new UnsettledError('another node has made the logs')
    }
  }

  /** With the lock: what the store may have, where the logs that are there tell the size of the others. */
  async #held(room: Room): Promise<number> {
    const refusal = await room.take(0)
    if (refusal !== undefined) throw this.#noRoom(0, refusal)
    return this.#storeBytes()
  }

  #noRoom(storeBytes: number, refusal: string | undefined): UnusableBrokerError {
    const why = refusal ?? `${storeBytes} bytes are not enough`
    return new UnusableBrokerError(`no room for the logs of ${this.#options.shards} shards: ${why}`)
  }

  async #storeBytes(): Promise<number> {
    return this.#options.storeBytes ?? (await this.#accountBytes()) ?? ASSUMED_STORE_BYTES
  }

  /** What the account may store on each server, undefined when that is not limited. */
  async #accountBytes(): Promise<number | undefined> {
    const { limits } = await this.#manager.getAccountInfo()
    return limits.max_storage > 0 ? Math.floor(limits.max_storage / this.#options.replicas) : undefined
  }

  /** The broker's words when it has no room for these sizes; `made` gathers what it had room for. */
  async #createSized(
    missing: readonly Wanted[],
    sizes: LogSizes,
    made: Set<string>,
  ): Promise<string | undefined> {
    // Shrunk, not removed: another node that starts at the same time may count on it already.
    for (const wanted of missing) if (made.has(wanted.name.stream)) await this.#shrink(wanted, sizes)
    for (const wanted of missing) {
      if (made.has(wanted.name.stream)) continue
      const refusal = await this.#addPatiently(wanted, sizes[wanted.kind])
      if (refusal !== undefined) return refusal
      made.add(wanted.name.stream)
    }
    return undefined
  }

  /**
   * One size for all shards, the smallest that is there: nodes that start together halve each on its own, and a journal
   * that another made must not be smaller than its inbox. Whoever changed something looks once more, so the last one ends
   * with all of them equal.
   */
  async level(all: readonly Wanted[]): Promise<void> {
    for (;;) {
      const inboxBytes: number[] = []
      for (const { name, kind } of all) {
        const info = await this.#info(name.stream)
        if (info !== undefined) inboxBytes.push(inboxBeside(kind, info.config.max_bytes))
      }
      const sizes = sizesFor(Math.min(...inboxBytes))
      let shrunk = false
      for (const wanted of all) shrunk = (await this.#shrink(wanted, sizes)) || shrunk
      if (!shrunk) return
    }
  }

  /** Whether it was larger. Never raised: another node found that there is no room. */
  async #shrink({ name, kind }: Wanted, sizes: LogSizes): Promise<boolean> {
    const info = await this.#info(name.stream)
    if (info === undefined || info.config.max_bytes <= sizes[kind]) return false
    try {
      await this.#manager.streams.update(name.stream, { max_bytes: sizes[kind] })
    } catch (cause) {
      // It was made even smaller meanwhile, and nothing is left to make it larger again.
      const code = codeOf(cause)
      if (code === undefined || !tooLarge.has(code)) throw cause
    }
    return true
  }

  /** Room that was just given back is not free at once in a cluster of brokers. */
  async #addPatiently(wanted: Wanted, maxBytes: number): Promise<string | undefined> {
    const { clock, replicas } = this.#options
    const deadline = clock.monotonic() + (replicas > 1 ? FREED_MS : 0)
    for (;;) {
      const refusal = await this.#add(wanted, maxBytes)
      if (refusal === undefined || clock.monotonic() >= deadline) return refusal
      await pause(clock)
    }
  }

  /** The broker's words when that is too large for it. */
  async #add({ name }: Wanted, maxBytes: number): Promise<string | undefined> {
    const { clock, replicas, shards } = this.#options
    const metadata = { [SHARDS_KEY]: String(shards) }
    const config = streamConfig({
      name,
      maxBytes,
      replicas,
      createdAt: clock.now(),
      metadata,
    })
    try {
      await addStream(this.#manager, clock, config)
      return undefined
    } catch (cause) {
      const code = codeOf(cause)
      // Another node starts at the same time; only `first_seq` differs.
      if (code === NAME_IN_USE) return undefined
      if (code !== undefined && tooLarge.has(code)) return messageOf(cause)
      if (mayPass(cause)) throw cause
      throw new UnusableBrokerError(`stream ${config.name} cannot be created: ${messageOf(cause)}`, { cause })
    }
  }

  #info(stream: string): Promise<StreamInfo | undefined> {
    return lookUp(this.#manager, this.#options.clock, stream)
  }
}

/** Of logs that are there, the smallest for all; undefined: none is. */
function sizesOf(kept: readonly Standing[]): LogSizes | undefined {
  if (kept.length === 0) return undefined
  return sizesFor(Math.min(...kept.map(({ kind, info }) => inboxBeside(kind, info.config.max_bytes))))
}
