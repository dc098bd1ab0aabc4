/**
 * One shard in the hands of one owner: from the claim to its end (design, section 4). Created anew for every
 * claim; a shard that failed or was fenced is never used again.
 */

import type { Clock, Randomness } from '../runtime/clock.ts'
import { withDeadline } from '../runtime/deadline.ts'
import { assembleShard, type ShardParts } from './assembly.ts'
import type { Broker } from './broker.ts'
import { figuresOf, type ShardFigures } from './figures.ts'
import type { HousekeepingLimits } from './housekeeping.ts'
import type { DeadLetters, DeletedBuffers, Deliverer, Policies, Projection, ShardTelemetry } from './ports.ts'
import { FencedError } from './ports.ts'
import { Release, releaseClaim } from './release.ts'

export interface ShardLimits {
  /** Payload frames kept in memory a shard, bytes; past it they are dropped and read again. */
  readonly payloadBudget: number
  /** So long they are kept at most, ms. */
  readonly payloadMs: number
  /** Attempts at once a buffer and shard. */
  readonly attemptsPerBuffer: number
  readonly housekeeping: HousekeepingLimits
}

export interface ShardOptions {
  readonly shard: number
  /** UUID of this process's boot. */
  readonly boot: string
  /** Number of this claim among all of this boot. */
  readonly claim: number
  readonly broker: Broker
  readonly clock: Clock
  readonly randomness: Randomness
  readonly policies: Policies
  readonly deliverer: Deliverer
  readonly deadLetters: DeadLetters
  /** Absent: the rows of deleted buffers stay. */
  readonly deletedBuffers?: DeletedBuffers
  readonly projection: Projection
  readonly telemetry: ShardTelemetry
  readonly limits: ShardLimits
  /** Whether the node surely still holds its lease; asked before each attempt. Absent: it does. */
  readonly holds?: () => boolean
  /** Called once when the shard ended by itself: fenced, or an invariant is broken. */
  readonly onEnd: (error: Error) => void
}

/** Between two looks at what it holds, ms. */
const LOOK_EVERY_MS = 1_000
/** So long a claim waits for Postgres; without it the groups go on that need nothing of it, ms. */
const EPOCH_MS = 500

export class Shard {
  readonly #options: ShardOptions
  #parts: ShardParts | null = null
  #ended = false
  #paused = false
  /** Counts pauses: a proof from before the last one proves nothing. */
  #pauses = 0
  #proving = false
  /** The inbox is not read any more, or never will be. */
  #readEnough = false
  /** It was let go before its claim was over. */
  #letGo = false
  #refused: string | null = null
  #state: 'claiming' | 'replaying' | 'running' | 'draining' | 'ended' = 'claiming'

  constructor(options: ShardOptions) {
    this.#options = options
  }

  get state(): string {
    return this.#state
  }

  get epoch(): number {
    return this.#parts?.epoch ?? 0
  }

  /** Last committed journal sequence: "the last good one" when the shard fails. */
  get lastSeq(): number {
    return this.#parts?.journal.lastSeq ?? 0
  }

  /** What is buffered of every buffer here; bytes of payloads, and as they are stored. */
  *buffered(): Generator<{ bufferUid: string; items: number; bytes: number; storedBytes: number }> {
    for (const { uid, items, bytes, storedBytes } of this.#parts?.groups.books() ?? []) {
      yield { bufferUid: uid, items, bytes, storedBytes }
    }
  }

  /** What it holds at `now`, Unix ms; null before it is claimed and after its end. */
  figures(now: number): ShardFigures | null {
    return this.#parts && !this.#ended ? figuresOf(this.#parts, now) : null
  }

  /** Why it does not go on although it runs: its journal takes nothing. null while it does. */
  get trouble(): string | null {
    return this.#refused
  }

  /**
   * While paused nothing is sealed and no attempt begins; items go on to be taken and dropped as duplicates. Whoever was
   * paused may have been replaced, and its successor may have sent what is due here: it goes on once a commit proves
   * that nobody else has claimed the shard.
   */
  pause(paused: boolean): void {
    if (paused && !this.#paused) this.#pauses++
    this.#paused = paused
    const parts = this.#parts
    if (parts === null || parts.groups.paused === paused) return
    if (paused) parts.groups.pause(true)
    else if (!this.#proving) void this.#goOn(parts)
  }

  async #goOn(parts: ShardParts): Promise<void> {
    this.#proving = true
    try {
      while (!this.#paused && !this.#ended && parts.groups.paused) {
        const pauses = this.#pauses
        await parts.journal.prove()
        if (pauses === this.#pauses && !this.#ended) parts.groups.pause(false)
      }
    } catch {
      // The journal is lost or closed: this owner ends, or has.
    } finally {
      this.#proving = false
    }
  }

  /** One round of housekeeping now. */
  async housekeep(): Promise<void> {
    await this.#parts?.housekeeping.round()
  }

  /** Claims the shard and runs it; resolves once it reads its inbox. Rejects when the claim fails. */
  async start(): Promise<void> {
    const began = this.#options.clock.monotonic()
    const { telemetry, shard, clock } = this.#options
    const pauses = this.#pauses
    const replayed = () => {
      if (this.#state === 'replaying') this.#state = 'running'
      const replayMs = clock.monotonic() - began
      telemetry.ownership({ shard, epoch: this.epoch, state: 'running', replayMs })
    }
    const parts = await assembleShard(this.#options, {
      onFatal: (error) => this.#fail(error),
      onReplayed: replayed,
      onRefused: (error) => {
        this.#refused = error.message
        this.#problem('the shard stands still', error)
      },
      onCommit: () => {
        this.#refused = null
      },
      onProblem: (what, error) => this.#problem(what, error),
      ended: () => this.#ended,
    })
    if (this.#ended) {
      if (this.#letGo) await releaseClaim(parts, clock)
      parts.stop()
      await parts.journal.close()
      return
    }
    this.#parts = parts
    // Sealed before Postgres told whether the journal lost commits, a batch could take a version that is in use.
    await withDeadline(clock, EPOCH_MS, parts.raised).catch(() => {})
    // `stop` came meanwhile, and needs nothing of the inbox.
    if (this.#ended || this.#readEnough) return
    // The claim may be older than a pause that is over: then a commit has to prove it again.
    parts.groups.pause(this.#paused || this.#pauses !== pauses)
    if (!this.#paused && !this.#proving) void this.#goOn(parts)
    if (this.#state === 'claiming') this.#state = 'replaying'
    telemetry.ownership({ shard, epoch: parts.epoch, state: 'replaying' })
    try {
      parts.begin()
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)))
      throw error
    }
    this.#look()
  }

  /**
   * Lets go in good order: no new seals and attempts, what runs is finished and committed, then a release
   * record. At most `timeoutMs`; what is in flight then is left to the next owner.
   */
  async stop(timeoutMs: number): Promise<void> {
    const parts = this.#leave()
    if (!parts) return
    await this.#releaseOf(parts).afterAttempts(timeoutMs)
    this.#end('released')
    await parts.journal.close()
  }

  /**
   * Gives the shard to the next owner while attempts run: no new seals and attempts, a release record that names
   * what runs, then `released` is called; what runs is finished here and its results are sent on. Resolves when
   * they are known there, at the latest after `timeoutMs`.
   */
  async handOver(timeoutMs: number, released: () => void): Promise<void> {
    const parts = this.#leave()
    if (!parts) return released()
    const deadline = this.#options.clock.monotonic() + timeoutMs
    const release = this.#releaseOf(parts)
    const passed = await release.duringAttempts(deadline)
    this.#end('released')
    released()
    await release.untilKnown(passed, deadline)
    await parts.journal.close()
  }

  /** The parts to let go of; null: there are none, or none any more. */
  #leave(): ShardParts | null {
    if (this.#parts && !this.#ended) {
      this.#state = 'draining'
      return this.#parts
    }
    this.#letGo = this.#parts === null
    this.#ended = true
    return null
  }

  #releaseOf(parts: ShardParts): Release {
    return new Release(this.#options, parts, {
      ended: () => this.#ended,
      stopReading: () => {
        this.#readEnough = true
        return parts.stopReading()
      },
      onProblem: (what, error) => this.#problem(what, error),
    })
  }

  /** Ends at once, as a crash would: nothing is written any more. */
  async abandon(): Promise<void> {
    this.#end('abandoned')
    await this.#parts?.stopReading()
    await this.#parts?.journal.close()
  }

  #fail(error: Error): void {
    if (this.#ended) return
    const fenced = error instanceof FencedError
    this.#end(fenced ? 'fenced' : 'failed', error)
    void this.#parts?.stopReading()
    void this.#parts?.journal.close()
    this.#options.onEnd(error)
  }

  #end(state: string, error?: Error): void {
    if (this.#ended) return
    this.#ended = true
    this.#state = 'ended'
    const parts = this.#parts
    parts?.stop()
    const { telemetry, shard } = this.#options
    telemetry.ownership({ shard, epoch: this.epoch, state, ...(error && { error: error.message }) })
  }

  #problem(what: string, error: unknown): void {
    const text = error instanceof Error ? error.message : String(error)
    this.#options.telemetry.problem({ shard: this.#options.shard, what, error: text })
  }

  #look(): void {
    const parts = this.#parts
    if (this.#ended || !parts) return
    parts.frames.giveUpOld()
    this.#options.telemetry.gauges({
      shard: this.#options.shard,
      epoch: parts.epoch,
      openGroups: parts.groups.size,
      bufferedItems: parts.live.count,
      bufferedBytes: parts.live.payloadBytes,
      residentBytes: parts.frames.residentBytes,
    })
    this.#options.clock.after(LOOK_EVERY_MS, () => this.#look())
  }
}
