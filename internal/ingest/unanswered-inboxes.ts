import type { Clock } from '../runtime/clock.ts'

/** Without another webhook for it, an inbox is not known to take nothing any more, ms: `/health` may be what keeps them away. */
const KNOWN_MS = 60_000

/**
 * Inboxes whose broker left a pack without an answer for as long as one is tried. A broker whose disk is full answers all
 * but appends, so nothing else tells (docs/reference/api.md, "Health").
 */
export class UnansweredInboxes {
  readonly #clock: Pick<Clock, 'monotonic'>
  /** When each was seen to take nothing last, monotonic ms. */
  readonly #shards = new Map<number, number>()

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  /** What became of a pack. The next one that is answered ends what is known of an inbox. */
  report(shard: number, answered: boolean): void {
    if (answered) this.#shards.delete(shard)
    else this.#shards.set(shard, this.#clock.monotonic())
  }

  /** The broker is back, and may take what it did not take before. */
  forget(): void {
    this.#shards.clear()
  }

  /** Rejects while there is one; names the first. */
  async refuse(): Promise<void> {
    const since = this.#clock.monotonic() - KNOWN_MS
    const first = this.#shards.entries().find(([, at]) => at > since)?.[0]
    if (first !== undefined) throw new Error(`the inbox of shard ${first} takes nothing`)
  }
}
