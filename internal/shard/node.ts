/**
 * An actor node: runs shards. A shard that fails stops alone (design, section 4: a poisoned shard); it is
 * claimed again after a back-off, so one bad record never takes the process or the other shards with it.
 */
import { FencedError } from './ports.ts'
import { Shard, type ShardOptions } from './shard.ts'
import { LostTailError } from './takeover.ts'

export interface ActorNodeOptions extends Omit<ShardOptions, 'shard' | 'claim' | 'onEnd'> {
  /** Shards of the installation; this node runs them all. */
  readonly shards: number
}

/** Pause before a failed shard is claimed again: doubled with each failure in a row, ms. */
const RESTART_MS = { first: 500, longest: 60_000 }
/** A shard that ran so long counts as healthy again, ms. */
const HEALTHY_MS = 60_000

interface Seat {
  shard: Shard | null
  failures: number
  startedAt: number
  starting: Promise<void>
  /** Why it does not run: null while it does. */
  trouble: string | null
}

export class ActorNode {
  readonly #options: ActorNodeOptions
  readonly #seats = new Map<number, Seat>()
  #claims = 0
  #stopping = false

  constructor(options: ActorNodeOptions) {
    this.#options = options
  }

  /** Claims all shards; resolves when each runs or has failed once. */
  async start(): Promise<void> {
    const numbers = Array.from({ length: this.#options.shards }, (_, shard) => shard)
    for (const shard of numbers) {
      this.#seats.set(shard, {
        shard: null,
        failures: 0,
        startedAt: 0,
        starting: Promise.resolve(),
        trouble: 'starting',
      })
    }
    await Promise.all(numbers.map((shard) => this.#run(shard)))
  }

  /** Hands all shards back in good order, within `timeoutMs`. */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopping = true
    await Promise.all([...this.#seats.values()].map((seat) => seat.shard?.stop(timeoutMs)))
  }

  /** Shards that do not run, with their reasons. */
  troubles(): { shard: number; trouble: string }[] {
    return [...this.#seats].flatMap(([shard, { trouble }]) => (trouble === null ? [] : [{ shard, trouble }]))
  }

  shard(number: number): Shard | null {
    return this.#seats.get(number)?.shard ?? null
  }

  async #run(number: number): Promise<void> {
    const seat = this.#seats.get(number)!
    const { clock } = this.#options
    const shard = new Shard({
      ...this.#options,
      shard: number,
      claim: ++this.#claims,
      onEnd: (error) => this.#ended(number, shard, error),
    })
    seat.shard = shard
    seat.startedAt = clock.monotonic()
    try {
      await shard.start()
      if (seat.shard === shard) seat.trouble = null
    } catch (error) {
      this.#ended(number, shard, error instanceof Error ? error : new Error(String(error)))
    }
  }

  #ended(number: number, shard: Shard, error: Error): void {
    const seat = this.#seats.get(number)!
    if (seat.shard !== shard || this.#stopping) return
    const { clock, telemetry } = this.#options
    seat.shard = null
    seat.trouble = error.message
    if (clock.monotonic() - seat.startedAt > HEALTHY_MS) seat.failures = 0
    const what = whatEnded(error)
    telemetry.problem({
      shard: number,
      what,
      error: error.stack ?? error.message,
      detail: { lastSeq: shard.lastSeq },
    })
    // Whoever runs the installation has to decide: a claim would only bury what was lost.
    if (!(error instanceof LostTailError)) this.#again(number, seat.failures++)
  }

  #again(number: number, failures: number): void {
    const pause = Math.min(RESTART_MS.longest, RESTART_MS.first * 2 ** Math.min(failures, 20))
    this.#options.clock.after(pause, () => {
      if (!this.#stopping) void this.#run(number)
    })
  }
}

function whatEnded(error: Error): string {
  if (error instanceof FencedError) return 'the shard was fenced'
  if (error instanceof LostTailError) return 'the broker lost messages'
  return 'the shard is quarantined'
}
