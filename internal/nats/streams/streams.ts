/**
 * Creates the streams of an installation at its first start and verifies them at every later one
 * (docs/architecture/protocol.md, "Logs").
 *
 * Every stream carries the shard count in its metadata, and, once all streams of the first start exist, a
 * mark that they were complete. So a lost stream is told from an interrupted first start: what is missing
 * beside a marked stream was there once, and making it anew would hide the loss. An archive is made anew beside a
 * journal that begins at its origin: nothing of that was ever removed, so no snapshot stands for it.
 *
 * When *all* streams are gone this looks like a first start, and nothing refuses it: new logs begin at the present
 * moment, above every position and epoch of the former ones, so nothing comes to mean two things, and what the
 * former ones held is lost. Owners report it where Postgres has counted below that beginning (`shard/claim/epoch.ts`).
 * Only where this node's clock is behind the former logs do the epochs in Postgres stop the shards.
 */

import { type JetStreamManager, nanos, type StreamInfo } from 'nats'
import { messageOf } from '../../runtime/thrown.ts'
import { type Connection, UnusableBrokerError } from '../connection.ts'
import { archiveName, inboxName, journalName, type StreamName } from '../names.ts'
import { DUPLICATE_WINDOW_MS, type ReportedConfig, streamFaults } from './stream-config.ts'
import { lookUp, mayPass, pause, UnsettledError } from './stream-lookup.ts'
import { SHARDS_KEY, type Standing, StreamMaking, type StreamOptions, type Wanted } from './stream-making.ts'

const COMPLETE_KEY = 'penstock.complete'

/** How long a start waits for a busy broker, and for streams that another node is making, ms. */
const SETTLE_MS = 60_000
/** A server that has just come to lead may not know a stream yet: so long it must be missing to be lost, ms. */
const LOST_AFTER_MS = 15_000

/**
 * Rejects with UnusableBrokerError, one line that names stream and setting, when a stream can lose data, is
 * missing beside others that were complete, or the logs are not empty and made for another count of shards. What
 * may pass is waited for: at a first start all nodes make the same streams at once, in a cluster of brokers. Resolves
 * with whether logs of another count, which never held an item, were replaced.
 */
export async function ensureStreams(connection: Connection, options: StreamOptions): Promise<boolean> {
  const manager = await connection.nats.jetstreamManager({ checkAPI: false })
  const { clock } = options
  const began = clock.monotonic()
  const deadline = began + SETTLE_MS
  let replaced = false
  for (;;) {
    const installation = new Installation(manager, options)
    try {
      await installation.ensure(clock.monotonic() > began + LOST_AFTER_MS)
      return replaced || installation.replaced
    } catch (cause) {
      if (!mayPass(cause)) throw cause
      if (clock.monotonic() > deadline)
        throw new UnusableBrokerError(`the streams are not ready: ${messageOf(cause)}`, { cause })
    }
    replaced ||= installation.replaced
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
  /** Logs of another count, which never held an item, are gone. */
  replaced = false

  constructor(manager: JetStreamManager, options: StreamOptions) {
    this.#manager = manager
    this.#options = options
    this.#prefix = options.prefix ?? ''
  }

  async recorded(): Promise<number | undefined> {
    return madeFor(await this.#found())
  }

  /** `sure`: what is missing by now is lost, else it may only be unknown to the server that answers. */
  async ensure(sure: boolean): Promise<void> {
    const found = await this.#reshard(await this.#found())
    const missing = this.#wanted().filter(({ name }) => !found.has(name.stream))
    await this.#refuseLoss(found, missing, sure)
    const kept: Standing[] = this.#wanted().flatMap((wanted) => {
      const info = found.get(wanted.name.stream)
      return info === undefined ? [] : [{ ...wanted, info }]
    })
    // Those that are there, before any is made: a refusal changes nothing.
    for (const { name, info } of kept) this.#refuseFaults(name, info)
    const making = new StreamMaking(this.#manager, this.#options)
    await making.create(missing, kept)
    // What was complete is in use, and keeps its room.
    if (missing.length > 0)
      await making.level(this.#wanted().filter(({ name }) => !isComplete(found.get(name.stream))))
    for (const wanted of this.#wanted()) await this.#verify(wanted)
    await this.#markComplete()
  }

  #wanted(): Wanted[] {
    const shards = Array.from({ length: this.#options.shards }, (_, shard) => shard)
    const each = (kind: Wanted['kind'], nameOf: (shard: number, prefix: string) => StreamName) =>
      shards.map((shard) => ({ shard, kind, name: nameOf(shard, this.#prefix) }))
    return [...each('inbox', inboxName), ...each('journal', journalName), ...each('archive', archiveName)]
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
    const number = /^(?:INBOX|JOURNAL|ARCHIVE)_(\d+)$/.exec(stream.slice(this.#prefix.length))?.[1]
    return stream.startsWith(this.#prefix) && number !== undefined ? Number(number) : undefined
  }

  #info(stream: string): Promise<StreamInfo | undefined> {
    return lookUp(this.#manager, this.#options.clock, stream)
  }

  #isInbox(stream: string): boolean {
    return stream.startsWith(`${this.#prefix}INBOX_`)
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
    this.replaced = true
    return new Map()
  }

  async #refuseLoss(found: Map<string, StreamInfo>, missing: Wanted[], sure: boolean): Promise<void> {
    const witness = [...found.values()].find((info) => isComplete(info) || everHeld(info))
    if (witness === undefined) return
    for (const { name, kind, shard } of missing) {
      // Looked at once more: between the two looks another node may have made all of them and marked them.
      if ((await this.#info(name.stream)) !== undefined)
        throw new UnsettledError(`stream ${name.stream} was just made`)
      if (!sure) throw new UnsettledError(`stream ${name.stream} is missing`)
      if (kind !== 'archive')
        throw new UnusableBrokerError(
          `stream ${name.stream} is missing, but ${witness.config.name} is there: its data is lost; restore it, or remove all streams to begin anew`,
        )
      const journal = journalName(shard, this.#prefix).stream
      if (!beginsAtOrigin(found.get(journal)))
        throw new UnusableBrokerError(
          `stream ${name.stream} is missing, but ${journal} is cut behind its snapshots: they are lost; restore a backup, or remove all streams to begin anew`,
        )
    }
  }

  async #verify({ name }: Wanted): Promise<void> {
    const info = await this.#info(name.stream)
    if (info === undefined) throw new UnsettledError(`stream ${name.stream} is not there`)
    this.#refuseFaults(name, info)
  }

  #refuseFaults(name: StreamName, info: StreamInfo): void {
    const demands = { name, replicas: this.#options.replicas }
    const faults = streamFaults(info.config as ReportedConfig, demands)
    if (faults.length > 0) throw new UnusableBrokerError(`stream ${name.stream}: ${faults.join('; ')}`)
  }

  async #markComplete(): Promise<void> {
    for (const { name } of this.#wanted()) {
      const info = await this.#info(name.stream)
      if (info === undefined) continue
      const { metadata: known, duplicate_window: window } = info.config
      if (known?.[COMPLETE_KEY] && window >= nanos(DUPLICATE_WINDOW_MS)) continue
      const metadata = { ...known, [COMPLETE_KEY]: 'true' }
      const duplicate_window = Math.max(window, nanos(DUPLICATE_WINDOW_MS))
      await this.#manager.streams.update(name.stream, { metadata, duplicate_window })
    }
  }
}

/** The shard count that these logs carry, undefined when none does. */
function madeFor(found: Map<string, StreamInfo>): number | undefined {
  for (const { config } of found.values()) {
    const shards = Number(config.metadata?.[SHARDS_KEY])
    if (shards > 0) return shards
  }
  return undefined
}

/** Whether all streams of the first start existed. */
function isComplete(info: StreamInfo | undefined): boolean {
  return info?.config.metadata?.[COMPLETE_KEY] !== undefined
}

/** Whether nothing was ever removed. */
function beginsAtOrigin(info: StreamInfo | undefined): boolean {
  return info !== undefined && info.state.first_seq === info.config.first_seq
}

/** Whether anything was ever stored: a purged stream counts. */
function everHeld({ state, config }: StreamInfo): boolean {
  return state.messages > 0 || state.last_seq >= Math.max(1, config.first_seq ?? 1)
}
