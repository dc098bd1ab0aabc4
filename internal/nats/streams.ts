/**
 * Creates the streams of an installation at its first start and verifies them at every later one (design,
 * section 3).
 *
 * Every stream carries the shard count in its metadata, and, once all streams of the first start exist, a
 * mark that they were complete. So a lost stream is told from an interrupted first start: what is missing
 * beside a marked stream was there once, and making it anew would hide the loss.
 *
 * When *all* streams are gone this looks like a first start, and nothing refuses it: new logs begin at the present
 * moment, above every position and epoch of the former ones, so nothing comes to mean two things, and what the
 * former ones held is lost. Owners report it where Postgres has counted below that beginning (`shard/epoch.ts`).
 * Only where this node's clock is behind the former logs do the epochs in Postgres stop the shards.
 */
import { ErrorCode, type JetStreamManager, NatsError, type StreamInfo } from 'nats'
import type { Clock } from '../runtime/clock.ts'
import { type Connection, UnusableBrokerError } from './connection.ts'
import { inboxName, journalName, type LogName } from './names.ts'
import { streamNotFound } from './stream-api.ts'
import {
  inboxDuplicateWindowMs,
  journalDuplicateWindowMs,
  type ReportedConfig,
  type StreamSizes,
  sizeStreams,
  sizesFor,
  streamConfig,
  streamFaults,
} from './stream-config.ts'

export interface StreamOptions {
  clock: Clock
  shards: number
  replicas: number
  /** In front of stream names and subjects; default empty. */
  prefix?: string
  /** Bytes that all logs together may take of the broker's store; default: what its account allows. */
  storeBytes?: number
}

const shardsKey = 'penstock.shards'
const completeKey = 'penstock.complete'

/** When neither configuration nor account says what the store holds, bytes; halved until it fits. */
const assumedStoreBytes = 64 * 1024 ** 3

const nameInUse = 10058
const temporarilyUnavailable = 10008
/** Storage or account limits, whichever the broker meets first. */
const tooLarge = new Set([10002, 10005, 10023, 10028, 10047])

/** How long a stream without leader is waited for at the start, ms. */
const leaderWaitMs = 15_000
const leaderPauseMs = 250
/** How long a start waits for a busy broker, and for streams that another node is making, ms. */
const settleMs = 60_000

/** Another node is making the streams at this moment, and not every server knows of all of them. */
class UnsettledError extends Error {}

interface Wanted {
  name: LogName
  duplicateWindowMs: number
  bytesOf: (sizes: StreamSizes) => number
}

/**
 * Rejects with UnusableBrokerError, one line that names stream and setting, when a stream can lose data, is
 * missing beside others that were complete, or the logs are not empty and made for another count of shards. What
 * may pass is waited for: at a first start all nodes make the same streams at once, in a cluster of brokers.
 */
export async function ensureStreams(connection: Connection, options: StreamOptions): Promise<void> {
  const manager = await connection.nats.jetstreamManager({ checkAPI: false })
  const { clock } = options
  const deadline = clock.monotonic() + settleMs
  for (;;) {
    try {
      return await new Installation(manager, options).ensure()
    } catch (cause) {
      if (!mayPass(cause)) throw cause
      if (clock.monotonic() > deadline)
        throw new UnusableBrokerError(`the streams are not ready: ${describe(cause)}`, { cause })
    }
    await pause(clock)
  }
}

/** The shard count of the first start, as the logs carry it; undefined when there are none. */
export async function recordedShards(
  connection: Connection,
  options: Omit<StreamOptions, 'shards'>,
): Promise<number | undefined> {
  const manager = await connection.nats.jetstreamManager({ checkAPI: false })
  return new Installation(manager, { ...options, shards: 1 }).recorded()
}

class Installation {
  readonly #manager: JetStreamManager
  readonly #options: StreamOptions
  readonly #prefix: string

  constructor(manager: JetStreamManager, options: StreamOptions) {
    this.#manager = manager
    this.#options = options
    this.#prefix = options.prefix ?? ''
  }

  async recorded(): Promise<number | undefined> {
    return madeFor(await this.#found())
  }

  async ensure(): Promise<void> {
    const found = await this.#found()
    const kept = await this.#reshard(found)
    const missing = this.#wanted().filter(({ name }) => !kept.has(name.stream))
    await this.#refuseLoss(kept, missing)
    // Those that are there, before any is made: a refusal changes nothing.
    for (const wanted of this.#wanted()) this.#refuseFaults(wanted, kept.get(wanted.name.stream))
    await this.#create(missing)
    if (missing.length > 0) await this.#level()
    for (const wanted of this.#wanted()) await this.#verify(wanted)
    await this.#markComplete()
  }

  #wanted(): Wanted[] {
    const shards = Array.from({ length: this.#options.shards }, (_, shard) => shard)
    const inboxes = shards.map((shard) => ({
      name: inboxName(shard, this.#prefix),
      duplicateWindowMs: inboxDuplicateWindowMs,
      bytesOf: (sizes: StreamSizes) => sizes.inboxBytes,
    }))
    const journals = shards.map((shard) => ({
      name: journalName(shard, this.#prefix),
      duplicateWindowMs: journalDuplicateWindowMs,
      bytesOf: (sizes: StreamSizes) => sizes.journalBytes,
    }))
    return [...inboxes, ...journals]
  }

  /** Every log there is, of whatever shard count, by stream name. */
  async #found(): Promise<Map<string, StreamInfo>> {
    const logs = new Map<string, StreamInfo>()
    for await (const name of this.#manager.streams.names()) {
      if (this.#shardOf(name) === undefined) continue
      const info = await this.#info(name)
      if (info !== undefined) logs.set(name, info)
    }
    return logs
  }

  #shardOf(stream: string): number | undefined {
    const number = /^(?:INBOX|JOURNAL)_(\d+)$/.exec(stream.slice(this.#prefix.length))?.[1]
    return stream.startsWith(this.#prefix) && number !== undefined ? Number(number) : undefined
  }

  #isInbox(stream: string): boolean {
    return stream.startsWith(`${this.#prefix}INBOX_`)
  }

  /** Waits for a leader: a stream that exists and does not answer is not a missing one. */
  async #info(name: string): Promise<StreamInfo | undefined> {
    const { clock } = this.#options
    const deadline = clock.monotonic() + leaderWaitMs
    for (;;) {
      try {
        return await this.#manager.streams.info(name)
      } catch (cause) {
        if (codeOf(cause) === streamNotFound) return undefined
        if (clock.monotonic() > deadline) {
          throw new UnusableBrokerError(`stream ${name} exists, but does not answer: ${describe(cause)}`, {
            cause,
          })
        }
        await pause(clock)
      }
    }
  }

  /** With another shard count: refuses, or begins anew when no inbox ever held an item. */
  async #reshard(found: Map<string, StreamInfo>): Promise<Map<string, StreamInfo>> {
    const { shards } = this.#options
    const made = madeFor(found)
    if (made === undefined || made === shards) return found
    for (const name of found.keys()) {
      // Looked at once more: a node with the former count may have started meanwhile.
      const info = await this.#info(name)
      if (info !== undefined && this.#isInbox(name) && everHeld(info)) {
        throw new UnusableBrokerError(
          `the logs were made for ${made} shards and ${name} is not empty: they cannot be used with ${shards}`,
        )
      }
    }
    for (const name of found.keys()) await this.#manager.streams.delete(name)
    return new Map()
  }

  async #refuseLoss(kept: Map<string, StreamInfo>, missing: Wanted[]): Promise<void> {
    const lost = missing[0]?.name.stream
    if (lost === undefined) return
    const witness = [...kept.values()].find((info) => info.config.metadata?.[completeKey] || everHeld(info))
    if (witness === undefined) return
    // Looked at once more: between the two looks another node may have made all of them and marked them.
    if ((await this.#info(lost)) !== undefined) throw new UnsettledError(`stream ${lost} was just made`)
    throw new UnusableBrokerError(
      `stream ${lost} is missing, but ${witness.config.name} is there: its data is lost; restore it, or remove all streams to begin anew`,
    )
  }

  async #create(missing: Wanted[]): Promise<void> {
    const made = new Set<string>()
    let storeBytes = this.#options.storeBytes ?? (await this.#accountBytes()) ?? assumedStoreBytes
    let refusal: string | undefined
    while (missing.length > made.size) {
      const sizes = sizeStreams(storeBytes, this.#options.shards)
      if (sizes === undefined) {
        const why = refusal ?? `${storeBytes} bytes are not enough`
        throw new UnusableBrokerError(`no room for the logs of ${this.#options.shards} shards: ${why}`)
      }
      refusal = await this.#createSized(missing, sizes, made)
      storeBytes = Math.floor(storeBytes / 2)
      if (refusal === undefined) return
    }
  }

  /** What the account may store on each server, undefined when that is not limited. */
  async #accountBytes(): Promise<number | undefined> {
    const { limits } = await this.#manager.getAccountInfo()
    return limits.max_storage > 0 ? Math.floor(limits.max_storage / this.#options.replicas) : undefined
  }

  /** The broker's words when it has no room for these sizes; `made` gathers what it had room for. */
  async #createSized(missing: Wanted[], sizes: StreamSizes, made: Set<string>): Promise<string | undefined> {
    // Shrunk, not removed: another node that starts at the same time may count on it already.
    for (const wanted of missing) if (made.has(wanted.name.stream)) await this.#shrink(wanted, sizes)
    for (const wanted of missing) {
      if (made.has(wanted.name.stream)) continue
      const refusal = await this.#add(wanted, wanted.bytesOf(sizes))
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
  async #level(): Promise<void> {
    for (;;) {
      const found = await this.#found()
      const inboxBytes = this.#wanted().flatMap(({ name, bytesOf }) => {
        const info = found.get(name.stream)
        return info ? [info.config.max_bytes - bytesOf(sizesFor(0))] : []
      })
      const sizes = sizesFor(Math.min(...inboxBytes))
      let shrunk = false
      for (const wanted of this.#wanted()) shrunk = (await this.#shrink(wanted, sizes)) || shrunk
      if (!shrunk) return
    }
  }

  /** Whether it was larger. Never raised: another node found that there is no room. */
  async #shrink({ name, bytesOf }: Wanted, sizes: StreamSizes): Promise<boolean> {
    const info = await this.#info(name.stream)
    if (info === undefined || info.config.max_bytes <= bytesOf(sizes)) return false
    try {
      await this.#manager.streams.update(name.stream, { max_bytes: bytesOf(sizes) })
    } catch (cause) {
      // It was made even smaller meanwhile, and nothing is left to make it larger again.
      const code = codeOf(cause)
      if (code === undefined || !tooLarge.has(code)) throw cause
    }
    return true
  }

  /** The broker's words when that is too large for it. */
  async #add({ name, duplicateWindowMs }: Wanted, maxBytes: number): Promise<string | undefined> {
    const { clock, replicas, shards } = this.#options
    const metadata = { [shardsKey]: String(shards) }
    const config = streamConfig({
      name,
      maxBytes,
      duplicateWindowMs,
      replicas,
      createdAt: clock.now(),
      metadata,
    })
    try {
      await this.#manager.streams.add(config)
      return undefined
    } catch (cause) {
      const code = codeOf(cause)
      // Another node starts at the same time; only `first_seq` differs.
      if (code === nameInUse) return undefined
      if (code !== undefined && tooLarge.has(code)) return describe(cause)
      if (mayPass(cause)) throw cause
      throw new UnusableBrokerError(`stream ${config.name} cannot be created: ${describe(cause)}`, { cause })
    }
  }

  async #verify(wanted: Wanted): Promise<void> {
    const { stream } = wanted.name
    const info = await this.#info(stream)
    if (info === undefined) throw new UnsettledError(`stream ${stream} is not there`)
    this.#refuseFaults(wanted, info)
  }

  #refuseFaults({ name, duplicateWindowMs }: Wanted, info: StreamInfo | undefined): void {
    if (info === undefined) return
    const demands = { name, duplicateWindowMs, replicas: this.#options.replicas }
    const faults = streamFaults(info.config as ReportedConfig, demands)
    if (faults.length > 0) throw new UnusableBrokerError(`stream ${name.stream}: ${faults.join('; ')}`)
  }

  async #markComplete(): Promise<void> {
    for (const { name } of this.#wanted()) {
      const info = await this.#info(name.stream)
      if (info === undefined || info.config.metadata?.[completeKey]) continue
      const metadata = { ...info.config.metadata, [completeKey]: 'true' }
      await this.#manager.streams.update(name.stream, { metadata })
    }
  }
}

/** The shard count that these logs carry, undefined when none does. */
function madeFor(found: Map<string, StreamInfo>): number | undefined {
  for (const { config } of found.values()) {
    const shards = Number(config.metadata?.[shardsKey])
    if (shards > 0) return shards
  }
  return undefined
}

/** Whether anything was ever stored: a purged stream counts. */
function everHeld({ state, config }: StreamInfo): boolean {
  return state.messages > 0 || state.last_seq >= Math.max(1, config.first_seq ?? 1)
}

/** Nobody answered in time, or what was asked for is under way. */
function mayPass(error: unknown): boolean {
  if (error instanceof UnsettledError || codeOf(error) === temporarilyUnavailable) return true
  return error instanceof NatsError && error.code === ErrorCode.Timeout
}

function pause(clock: Clock): Promise<void> {
  return new Promise((resolve) => clock.after(leaderPauseMs, resolve))
}

function codeOf(error: unknown): number | undefined {
  return error instanceof NatsError ? error.api_error?.err_code : undefined
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
