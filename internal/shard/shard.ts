/**
 * One shard in the hands of one owner: from the claim to its end (docs/architecture/protocol.md, "Claims"). Created
 * anew for every claim; a shard that failed or was fenced is never used again.
 */

import { asError, messageOf } from '../runtime/thrown.ts'
import { assembleShard } from './assembly.ts'
import { figuresOf, type ShardFigures } from './figures.ts'
import type { BufferState } from './held/buffer-state.ts'
import type { FoldState } from './journal/state.ts'
import type { ShardEvents, ShardOptions } from './options.ts'
import type { ShardParts } from './parts.ts'
import { Pausing } from './pausing.ts'
import { FencedError } from './ports.ts'
import { Release, releaseClaim } from './release.ts'

/** Between two looks at what it holds, ms. */
const LOOK_EVERY_MS = 1_000

/**
 *   claiming ─▶ replaying ─▶ running ─▶ draining ─▶ ended
 *
 * Every phase may be followed by `ended`, and `replaying` by `draining`.
 */
type Phase =
  /** The claim is under way; nothing acts. */
  | { readonly name: 'claiming'; readonly parts: null }
  /** `draining`: it lets go in good order. */
  | { readonly name: 'replaying' | 'running' | 'draining'; readonly parts: ShardParts }
  /** `parts`: null when it ended before its claim did. `wanted`: it was let go, and did not fail. */
  | { readonly name: 'ended'; readonly parts: ShardParts | null; readonly wanted: boolean }

export class Shard {
  readonly #options: ShardOptions
  readonly #pausing = new Pausing(() => this.#ended)
  readonly #events: ShardEvents
  #phase: Phase = { name: 'claiming', parts: null }
  /** When its claim began, monotonic ms. */
  #began = 0
  /** Why the journal takes nothing; null while it does. */
  #refused: string | null = null

  constructor(options: ShardOptions) {
    this.#options = options
    this.#events = this.#listener()
  }

  /** `claiming`, `replaying`, `running`, `draining` or `ended`. */
  get state(): string {
    return this.#phase.name
  }

  get epoch(): number {
    return this.#phase.parts?.epoch ?? 0
  }

  /** Last committed journal sequence: "the last good one" when the shard fails. */
  get lastSeq(): number {
    return this.#phase.parts?.journal.lastSeq ?? 0
  }

  /** What its journal says, with its own commits; null before it is claimed. */
  get fold(): FoldState | null {
    return this.#phase.parts?.state ?? null
  }

  /** Every buffer that holds something here. */
  buffered(): Iterable<Readonly<BufferState>> {
    return this.#phase.parts?.groups.buffers() ?? []
  }

  /** What it holds at `now`, Unix ms; null before it is claimed and after its end. */
  figures(now: number): ShardFigures | null {
    return this.#phase.parts && !this.#ended ? figuresOf(this.#phase.parts, now) : null
  }

  /** Why it does not go on although it runs: its journal takes nothing. null while it does. */
  get trouble(): string | null {
    return this.#refused
  }

  /** While paused nothing is sealed and no attempt begins; see `Pausing`. */
  pause(paused: boolean): void {
    this.#pausing.pause(paused, this.#phase.parts)
  }

  /** One round of housekeeping now. */
  async housekeep(): Promise<void> {
    await this.#phase.parts?.housekeeping.round()
  }

  /** Claims the shard and runs it; resolves once it reads its inbox. Rejects when the claim fails. */
  async start(): Promise<void> {
    this.#began = this.#options.clock.monotonic()
    const { pauses } = this.#pausing
    const parts = await assembleShard(this.#options, this.#events)
    if (this.#phase.name !== 'ended') return this.#run(parts, pauses)
    // Let go meanwhile: without a release record the next owner would have to wait.
    if (this.#phase.wanted) await releaseClaim(parts, this.#options.clock)
    parts.stop()
    await parts.journal.close()
  }

  /**
   * Lets go in good order: no new seals and attempts, what runs is finished and committed, then a release
   * record. At most `timeoutMs`; what is in flight then is left to the next owner. While `awaited` it goes on to read, and
   * tells its verdicts.
   */
  async stop(timeoutMs: number, awaited: () => boolean = () => false): Promise<void> {
    const parts = this.#leave()
    if (!parts) return
    await new Release(this.#options, parts, this.#events).afterAttempts(timeoutMs, awaited)
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
    const release = new Release(this.#options, parts, this.#events)
    const passed = await release.duringAttempts(deadline)
    this.#end('released')
    released()
    await release.untilKnown(passed, deadline)
    await parts.journal.close()
  }

  /** Ends at once, as a crash would: nothing is written any more. */
  async abandon(): Promise<void> {
    this.#end('abandoned')
    await this.#phase.parts?.stopReading()
    await this.#phase.parts?.journal.close()
  }

  get #ended(): boolean {
    return this.#phase.name === 'ended'
  }

  /** The only place at which a phase begins. */
  #enter(phase: Phase): void {
    if (this.#ended) throw new Error(`an ended shard cannot be ${phase.name}`)
    this.#phase = phase
  }

  /** Takes what its parts tell. */
  #listener(): ShardEvents {
    const { telemetry, shard, clock } = this.#options
    return {
      onFatal: (error) => this.#fail(error),
      onReplayed: () => {
        if (this.#phase.name === 'replaying') this.#enter({ name: 'running', parts: this.#phase.parts })
        const replayMs = clock.monotonic() - this.#began
        telemetry.ownership({ shard, epoch: this.epoch, state: 'running', replayMs })
      },
      onRefused: (error) => {
        this.#refused = error.message
        this.#problem('the shard stands still', error)
      },
      onCommit: () => {
        this.#refused = null
      },
      onProblem: (what, error) => this.#problem(what, error),
      ended: () => this.#ended,
    }
  }

  #run(parts: ShardParts, pausesAtClaim: number): void {
    const { telemetry, shard } = this.#options
    this.#pausing.begin(parts, pausesAtClaim)
    this.#enter({ name: 'replaying', parts })
    telemetry.ownership({ shard, epoch: parts.epoch, state: 'replaying' })
    try {
      parts.begin()
    } catch (error) {
      this.#fail(asError(error))
      throw error
    }
    this.#look()
  }

  /** The parts to let go of; null: there are none, or none any more. */
  #leave(): ShardParts | null {
    if (this.#ended) return null
    const parts = this.#phase.parts
    if (parts) this.#enter({ name: 'draining', parts })
    else this.#enter({ name: 'ended', parts: null, wanted: true })
    return parts
  }

  #fail(error: Error): void {
    if (this.#ended) return
    const fenced = error instanceof FencedError
    this.#end(fenced ? 'fenced' : 'failed', error)
    void this.#phase.parts?.stopReading()
    void this.#phase.parts?.journal.close()
    this.#options.onEnd(error)
  }

  #end(how: string, error?: Error): void {
    if (this.#ended) return
    const parts = this.#phase.parts
    this.#enter({ name: 'ended', parts, wanted: false })
    parts?.stop()
    const { telemetry, shard } = this.#options
    telemetry.ownership({ shard, epoch: this.epoch, state: how, ...(error && { error: error.message }) })
  }

  #problem(what: string, error: unknown): void {
    this.#options.telemetry.problem({ shard: this.#options.shard, what, error: messageOf(error) })
  }

  #look(): void {
    const parts = this.#phase.parts
    if (this.#ended || !parts) return
    parts.payloads.giveUpOld()
    parts.batches.look()
    parts.groups.look()
    this.#options.telemetry.gauges({
      shard: this.#options.shard,
      epoch: parts.epoch,
      openGroups: parts.groups.size,
      bufferedItems: parts.live.count,
      bufferedBytes: parts.live.payloadBytes,
      residentBytes: parts.payloads.residentBytes,
    })
    this.#options.clock.after(LOOK_EVERY_MS, () => this.#look())
  }
}
