/**
 * After every reconnect the broker must still have what this owner saw and wrote (docs/architecture/protocol.md, "Lost tail").
 * Until it was seen again, nothing is read or committed.
 *
 * Invariant: it listens from the claim on, before anything is looked at. Else a power cut between a look and the first
 * reconnect that is heard would go unseen.
 */
import { sleep } from '../runtime/sleep.ts'
import { messageOf } from '../runtime/thrown.ts'
import { rememberLoss } from './claim/epoch.ts'
import { checkInbox, probeInbox } from './claim/inbox-check.ts'
import type { InboxReading } from './claim/inbox-reading.ts'
import type { ReplayState } from './held/replay.ts'
import type { Journal } from './journal/journal.ts'
import type { HighWater } from './journal/records.ts'
import { Refusals } from './journal/refusals.ts'
import type { FoldState } from './journal/state.ts'
import { LostTailError } from './lost-tail.ts'
import type { ShardEvents, ShardOptions } from './options.ts'
import { FencedError } from './ports.ts'

/** Between two checks of logs that do not answer, ms. */
const CHECK_PAUSE_MS = 500

/** What the inbox must have. */
export interface Seen {
  readonly state: FoldState
  readonly replay: Readonly<Omit<ReplayState, 'until'>> & Pick<ReplayState, 'until'>
}

export class LogWatch {
  readonly #options: ShardOptions
  readonly #events: ShardEvents
  #journal: Journal | null = null
  readonly #end: () => void
  /** null: nothing of the inbox was seen yet. */
  #seen: Seen | null = null
  /** A reconnect was followed by no check yet. */
  #unseen = false
  /** It reads only while both logs were seen. */
  #reading: Pick<InboxReading, 'pause' | 'goOn'> | null = null
  /** What ends the shard once the logs are seen again. */
  #failed: Error | null = null
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

  /** It has begun. What it would read before a check may stand where others were lost. */
  attend(reading: Pick<InboxReading, 'pause' | 'goOn'>): void {
    this.#reading = reading
    if (this.#unseen) reading.pause()
  }

  /**
   * Ends the shard for this reason, but not before the logs were seen again: a message that is not what it was may be a loss, and that is
   * to be told then.
   */
  fail(error: Error): void {
    if (!this.#unseen || error instanceof FencedError) this.#events.onFatal(error)
    else this.#failed ??= error
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
    const { ended, onProblem, onRefused } = this.#events
    const number = ++this.#checks
    journal.reconnected()
    this.#unseen = true
    this.#reading?.pause()
    const stopped = () => number !== this.#checks || ended()
    let [told, refused] = [false, false]
    const tell = (error: Error) => {
      refused = true
      onRefused(error)
    }
    const refusals = new Refusals(clock, tell)
    while (number === this.#checks) {
      try {
        await journal.seeAgain(async () => {
          await this.#seeInbox(journal, stopped, tell)
          // Before the journal goes on.
          if (this.#failed && !stopped()) this.#events.onFatal(this.#failed)
        })
        // A shard at rest commits nothing else that tells that it goes on.
        if (refused) await journal.prove()
        if (number !== this.#checks) return
        this.#unseen = false
        this.#reading?.goOn()
        return
      } catch (error) {
        if (!ended() && error instanceof LostTailError) return await endOf(this.#options, this.#events, error)
        if (!ended() && !told) onProblem('the logs cannot be checked', error)
        told = true
        refusals.again({ kind: 'unknown', error: messageOf(error) })
      }
      await sleep(clock, CHECK_PAUSE_MS)
    }
  }

  async #seeInbox(
    journal: Journal,
    stopped: () => boolean,
    onRefused: (error: Error) => void,
  ): Promise<void> {
    const { broker, shard } = this.#options
    const seen = this.#seen
    if (seen === null) return
    const check = { ...this.#options, inbox: broker.inbox(shard), journal, stopped, onRefused }
    await checkInbox(check, seen.state, this.mark)
    if (!seen.replay.replaying) return
    // What nobody had read of it may be lost, and with it the message that the replay waits for. The reading comes to this one.
    const end = await probeInbox(check)
    if (end !== null) seen.replay.until = Math.min(seen.replay.until, end)
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
