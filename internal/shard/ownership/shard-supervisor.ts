/**
 * One shard in the hands of this node, from the decision to run it until it is let go. A shard that fails stops
 * alone (docs/architecture/protocol.md, "Quarantine") and is claimed again after a back-off, so one bad record never
 * takes the process or the other shards with it.
 */

import type { Clock } from '../../runtime/clock.ts'
import { withDeadline } from '../../runtime/deadline.ts'
import { asError } from '../../runtime/thrown.ts'
import { LostTailError } from '../lost-tail.ts'
import { FencedError, type ShardTelemetry } from '../ports.ts'
import type { Shard } from '../shard.ts'

/** Pause before a failed shard is claimed again: doubled with each failure in a row, ms. */
const RESTART_MS = { first: 500, longest: 60_000 }
/** So long a stop waits for a claim that has begun, ms. */
const CLAIM_MS = 2_000
/** A shard that ran so long counts as healthy again, ms. */
const HEALTHY_MS = 60_000

export interface ShardSupervisorOptions {
  readonly number: number
  readonly clock: Clock
  readonly telemetry: ShardTelemetry
  readonly create: (onEnd: (error: Error) => void) => Shard
  /** Another node has claimed the shard: this supervisor ends. */
  readonly onFenced: () => void
}

export class ShardSupervisor {
  readonly #options: ShardSupervisorOptions
  #shard: Shard | null = null
  #failures = 0
  #startedAt = 0
  #paused = false
  #leaving = false
  #lost = false
  #trouble: string | null = 'starting'
  #cancelRestart: (() => void) | undefined
  #starting: Promise<void> = Promise.resolve()

  constructor(options: ShardSupervisorOptions) {
    this.#options = options
  }

  get shard(): Shard | null {
    return this.#shard
  }

  /** Why it does not run, or does not go on: null while it does. */
  get trouble(): string | null {
    return this.#shard?.trouble ?? this.#trouble
  }

  /** Of its claim; `quarantined` before the next one, `lost` when there will be none before a repair. */
  get state(): string {
    return this.#shard?.state ?? (this.#lost ? 'lost' : 'quarantined')
  }

  /** Whether it is on its way to the next owner, or to an end. */
  get leaving(): boolean {
    return this.#leaving
  }

  /** Claims and runs it; resolves when it runs or has failed once. */
  start(): Promise<void> {
    this.#starting = this.#begin()
    return this.#starting
  }

  async #begin(): Promise<void> {
    const shard: Shard = this.#options.create((error) => this.#ended(shard, error))
    this.#shard = shard
    this.#startedAt = this.#options.clock.monotonic()
    shard.pause(this.#paused)
    try {
      await shard.start()
      if (this.#shard === shard) this.#trouble = null
    } catch (error) {
      this.#ended(shard, asError(error))
    }
  }

  pause(paused: boolean): void {
    this.#paused = paused
    this.#shard?.pause(paused)
  }

  /** Stops in good order, with nobody to take it over now; `awaited`: see `Shard.stop`. */
  async stop(timeoutMs: number, awaited?: () => boolean): Promise<void> {
    const leftMs = await this.#leave(timeoutMs, CLAIM_MS)
    await this.#shard?.stop(leftMs, awaited)
  }

  /** Gives it to the next owner: `released` is called when that one may claim it. */
  async handOver(timeoutMs: number, released: () => void): Promise<void> {
    const leftMs = await this.#leave(timeoutMs, timeoutMs)
    if (this.#shard) await this.#shard.handOver(leftMs, released)
    else released()
  }

  /**
   * Claims no more, and waits so long at most for a claim under way: it replaced the last owner, and without a release record the next
   * one would have to wait. Answers what is left of `timeoutMs`.
   */
  async #leave(timeoutMs: number, claimMs: number): Promise<number> {
    this.#leaving = true
    this.#cancelRestart?.()
    const { clock } = this.#options
    const deadline = clock.monotonic() + timeoutMs
    await withDeadline(clock, Math.min(timeoutMs, claimMs), this.#starting).catch(() => {})
    return Math.max(0, deadline - clock.monotonic())
  }

  #ended(shard: Shard, error: Error): void {
    if (this.#shard !== shard || this.#leaving) return
    const { clock, telemetry, number } = this.#options
    this.#shard = null
    this.#trouble = error.message
    if (clock.monotonic() - this.#startedAt > HEALTHY_MS) this.#failures = 0
    telemetry.problem({
      shard: number,
      what: whatEnded(error),
      error: error.stack ?? error.message,
      detail: { lastSeq: shard.lastSeq },
    })
    if (error instanceof FencedError) this.#options.onFenced()
    // Whoever runs the installation has to decide: a claim would only hide what was lost.
    else if (error instanceof LostTailError) this.#lost = true
    else this.#restart()
  }

  #restart(): void {
    const pause = Math.min(RESTART_MS.longest, RESTART_MS.first * 2 ** Math.min(this.#failures++, 20))
    this.#cancelRestart = this.#options.clock.after(pause, () => void this.start())
  }
}

function whatEnded(error: Error): string {
  if (error instanceof FencedError) return 'the shard was fenced'
  if (error instanceof LostTailError) return 'the broker lost messages'
  return 'the shard is quarantined'
}
