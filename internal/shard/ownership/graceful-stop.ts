/**
 * How a node that stops makes sure that its shards are in good hands. Often all nodes are told to stop at once. Shards
 * that they handed to each other would be nobody's, and the results of running attempts would be lost. So each node
 * announces that it takes none any more and listens before it decides, and what nobody took over is taken back.
 */
import type { Clock } from '../../runtime/clock.ts'
import { sleep } from '../../runtime/sleep.ts'
import type { Membership } from './membership.ts'

/** A stopping node waits until nobody has said anything for so long, in all at most, ms. */
const OTHERS_QUIET_MS = 300
const OTHERS_WAIT_MS = 1_000
const POLL_MS = 20
/** Whether a shard has to be taken back is asked in each so many polls; not any more with less time than this left, ms. */
const TAKE_BACK_ROUNDS = 15
const TAKE_BACK_MS = 1_000

export interface GracefulStopOptions {
  readonly clock: Clock
  readonly membership: Membership
  /** Whether another node takes shards. */
  readonly others: () => boolean
  /** Whether another node takes webhooks, or waits for verdicts on some. */
  readonly senders: () => boolean
  /** Shards that are handed over and not yet known to be the next owner's, once each. */
  readonly released: () => ReadonlySet<number>
  /** Hand-overs that have not ended. */
  readonly handingOver: () => boolean
  /** Claims a shard that nobody has, and stops it in good order within so many ms. */
  readonly takeBack: (shard: number, leftMs: () => number) => Promise<void>
}

export class GracefulStop {
  readonly #options: GracefulStopOptions

  constructor(options: GracefulStopOptions) {
    this.#options = options
  }

  /** Announces that this node takes no shards any more. Resolves once the others had time to say that they stop, too. */
  async announce(): Promise<void> {
    const { clock, membership, others, senders } = this.#options
    membership.announce({ accepting: false })
    const end = clock.monotonic() + OTHERS_WAIT_MS
    let quietAt = clock.monotonic() + OTHERS_QUIET_MS
    const unsubscribe = membership.onChange(() => {
      quietAt = clock.monotonic() + OTHERS_QUIET_MS
    })
    const mayHear = () => others() || senders()
    while (clock.monotonic() < Math.min(quietAt, end) && mayHear()) await sleep(clock, POLL_MS)
    unsubscribe()
  }

  /**
   * Resolves when every hand-over has ended, at `deadline` (monotonic ms) at the latest. The nodes that were to take the
   * shards may be stopping as well: with nobody else left, the shards are taken back.
   */
  async seeOff(deadline: number): Promise<void> {
    const { clock, handingOver, others, released, takeBack } = this.#options
    const leftMs = () => deadline - clock.monotonic()
    const back = new Set<Promise<void>>()
    for (let round = 0; handingOver() && leftMs() > 0; round++) {
      if (round % TAKE_BACK_ROUNDS === 0 && !others() && leftMs() > TAKE_BACK_MS)
        for (const shard of released()) back.add(takeBack(shard, leftMs))
      await sleep(clock, POLL_MS)
    }
    await Promise.all(back)
  }
}
