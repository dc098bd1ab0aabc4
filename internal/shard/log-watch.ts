/**
 * After every reconnect the broker must still have what this owner saw and wrote (docs/architecture/protocol.md, "Lost tail").
 * Until it was seen again, nothing is committed.
 *
 * Invariant: it listens from the claim on, before anything is looked at. Else a power cut between a look and the first
 * reconnect that is heard would go unseen.
 */
import { sleep } from '../runtime/sleep.ts'
import { rememberLoss } from './claim/epoch.ts'
import { sureOfInbox } from './claim/fresh-inbox.ts'
import { checkHighWater, checkInboxHead } from './claim/takeover.ts'
import type { ReplayState } from './held/replay.ts'
import type { Journal } from './journal/journal.ts'
import type { HighWater } from './journal/records.ts'
import type { FoldState } from './journal/state.ts'
import { LostTailError } from './lost-tail.ts'
import type { ShardEvents, ShardOptions } from './parts.ts'

/** Between two checks of logs that do not answer, ms. */
const CHECK_PAUSE_MS = 500

/** What the inbox must have. */
export interface Seen {
  readonly state: FoldState
  readonly replay: Readonly<ReplayState>
}

export class LogWatch {
  readonly #options: ShardOptions
  readonly #events: ShardEvents
  #journal: Journal | null = null
  readonly #end: () => void
  /** null: nothing of the inbox was seen yet. */
  #seen: Seen | null = null
  /** A later check replaces an earlier one. */
  #checks = 0

  constructor(options: ShardOptions, events: ShardEvents) {
    this.#options = options
    this.#events = events
    this.#end = options.broker.onReconnect(() => {
      if (this.#journal) void this.#check(this.#journal)
    })
  }

  /** The highest message of the inbox that was seen, by this owner or by one before it. */
  get mark(): HighWater | null {
    return this.#seen?.replay.highWater ?? null
  }

  /** Its claim is stored. */
  begin(journal: Journal): Journal {
    this.#journal = journal
    return journal
  }

  /** From now on the inbox must have this, too. */
  saw(seen: Seen): void {
    this.#seen = seen
  }

  stop(): void {
    this.#end()
    this.#checks++
  }

  /** Asks until it is told: a broker that is just back may have no leader of the logs yet. */
  async #check(journal: Journal): Promise<void> {
    const { clock } = this.#options
    const { ended, onProblem } = this.#events
    const number = ++this.#checks
    journal.reconnected()
    const stopped = () => number !== this.#checks || ended()
    let told = false
    while (number === this.#checks) {
      try {
        return await journal.seeAgain(() => this.#seeInbox(journal, stopped))
      } catch (error) {
        if (!ended() && error instanceof LostTailError) return await endOf(this.#options, this.#events, error)
        if (!ended() && !told) onProblem('the logs cannot be checked', error)
        told = true
      }
      await sleep(clock, CHECK_PAUSE_MS)
    }
  }

  async #seeInbox(journal: Journal, stopped: () => boolean): Promise<void> {
    const { broker, shard } = this.#options
    const seen = this.#seen
    if (seen === null) return
    const asking = { ...this.#options, inbox: broker.inbox(shard), journal, stopped }
    // A message that is read meanwhile may stand behind the probe.
    const mark = this.mark
    await sureOfInbox(asking, async (inbox) => {
      await checkHighWater(inbox, shard, mark)
      await checkInboxHead(inbox, shard, seen.state)
    })
  }
}

export async function endOf(
  { deadLetters, shard, clock }: ShardOptions,
  events: ShardEvents,
  error: Error,
): Promise<void> {
  events.onFatal(error)
  // Known to this owner alone: not all that it saw is written down.
  if (error instanceof LostTailError) await rememberLoss(deadLetters, shard, clock)
}
