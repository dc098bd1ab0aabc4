/**
 * How an owner lets go of its shard in good order (docs/architecture/protocol.md, "Hand-over"): up to a release
 * record that names what still runs.
 */

import type { Clock } from '../runtime/clock.ts'
import { withDeadline } from '../runtime/deadline.ts'
import { sleep } from '../runtime/sleep.ts'
import { ATTEMPT_MS } from './batches/attempts.ts'
import { PassedResults, type Told } from './batches/handover.ts'
import { type BatchName, batchKey } from './journal/batch-name.ts'
import type { ReleaseRecord } from './journal/records.ts'
import type { ShardEvents, ShardOptions } from './options.ts'
import type { ShardParts } from './parts.ts'

const POLL_MS = 20
const LAST_COUNTERS_MS = 500
/** How long a hand-over waits for what is restored, and for batches on their way into the dead letter queue, ms. */
const DEAD_LETTERS_MS = 500
/**
 * A release names so many batches at most: twice the attempts of a process, 30 bytes each, and less than a commit may have.
 * What is left out is sent again, as after a crash.
 */
const MOST_NAMED = 16_384
/** What a release record gets at least, ms. */
const RELEASE_MS = 500

type Releasing = Pick<ShardOptions, 'shard' | 'boot' | 'broker' | 'clock'>
type ReleaseEvents = Pick<ShardEvents, 'ended' | 'onProblem'>

export class Release {
  readonly #options: Releasing
  readonly #parts: ShardParts
  readonly #events: ReleaseEvents

  constructor(options: Releasing, parts: ShardParts, events: ReleaseEvents) {
    this.#options = options
    this.#parts = parts
    this.#events = events
  }

  /**
   * What runs ends here and is committed, but for what takes longer than `timeoutMs`: this is left to the next owner.
   * `awaited`: somebody waits for verdicts of this owner.
   */
  async afterAttempts(timeoutMs: number, awaited: () => boolean): Promise<void> {
    const { batches, journal } = this.#parts
    const deadline = this.#options.clock.monotonic() + timeoutMs
    batches.drain()
    await this.#untilRestored(deadline)
    await this.#until(() => !awaited(), deadline)
    await this.#stopTaking()
    // With what runs at the last owner: there is nobody else to take note of its results.
    const busy = () => batches.attempts.count > 0 || batches.deadLettering > 0 || !journal.idle
    await this.#until(() => !busy(), deadline)
    this.#leaveRemoteAttempts()
    await this.#say(inFlight(this.#parts, this.#options.clock.now()), deadline)
    if (!this.#events.ended()) await this.#countLast()
  }

  /**
   * What runs goes on here, and its results are sent to the next owner, with those that came from the owner before and
   * were of no use here yet (only who has restored a batch can use its result): see `untilKnown`. `deadline`: monotonic ms.
   */
  async duringAttempts(deadline: number): Promise<PassedResults> {
    const { clock } = this.#options
    const { batches, replay } = this.#parts
    batches.drain()
    await this.#stopTaking()
    const soon = clock.monotonic() + DEAD_LETTERS_MS
    if (!replay.replaying) await this.#untilRestored(soon)
    await this.#until(() => batches.deadLettering === 0, soon)
    const now = clock.now()
    const unclaimed = this.#unclaimed()
    const named = inFlight(this.#parts, now, unclaimed)
    // The next owner awaits what is named, and confirms nothing else.
    const awaited = among(named, [...batches.attempts.inFlight(now, 'here'), ...unclaimed])
    const passed = new PassedResults(this.#options, awaited)
    this.#leaveRemoteAttempts()
    batches.attempts.passOn(passed)
    for (const told of unclaimed) passed.tell(told, told.result)
    await this.#say(named, deadline)
    return passed
  }

  /** Until the next owner has all results, or `deadline`, monotonic ms. The shard's end does not end it. */
  async untilKnown(passed: PassedResults, deadline: number): Promise<void> {
    while (!passed.done && this.#options.clock.monotonic() < deadline) await this.#pause()
    passed.stop()
  }

  async #stopTaking(): Promise<void> {
    await this.#parts.stopReading()
    this.#parts.housekeeping.stop()
  }

  /** What runs at the last owner can be taken note of only once it is restored, which is after the replay. */
  async #untilRestored(deadline: number): Promise<void> {
    const { restoration, state } = this.#parts
    const mayRun = () => [...state.released.values()].some((until) => until > this.#options.clock.now())
    const awaited = () => mayRun() || this.#unclaimed().length > 0
    await this.#until(() => restoration.finished || !awaited(), deadline)
  }

  /** What the last owner told of batches that are not restored yet. */
  #unclaimed(): Told[] {
    const { restoration, remoteAttempts, state } = this.#parts
    return restoration.finished
      ? []
      : remoteAttempts.unclaimed().filter((told) => state.released.has(batchKey(told)))
  }

  /** What comes of attempts at the last owner is the next one's: nothing could be written of it behind the release. */
  #leaveRemoteAttempts(): void {
    this.#parts.restoration.stop()
    this.#parts.remoteAttempts.stop()
  }

  async #say(batches: ReleaseRecord['batches'], deadline: number): Promise<void> {
    if (this.#events.ended()) return
    let said = false
    this.#parts.journal.write({ type: 'release', batches }, () => {
      said = true
    })
    await this.#until(() => said, Math.max(deadline, this.#options.clock.monotonic() + RELEASE_MS))
  }

  /** The last counters, when Postgres takes them at once; else the next owner finds them in the journal. */
  async #countLast(): Promise<void> {
    const counted = withDeadline(this.#options.clock, LAST_COUNTERS_MS, this.#parts.projector.flush())
    await counted.catch((error: unknown) => this.#events.onProblem('delivery counters', error))
  }

  /** Until it holds, `deadline` (monotonic ms), or the end of this owner. */
  async #until(holds: () => boolean, deadline: number): Promise<void> {
    const { clock } = this.#options
    while (!holds() && clock.monotonic() < deadline && !this.#events.ended()) await this.#pause()
  }

  #pause(): Promise<void> {
    return sleep(this.#options.clock, POLL_MS)
  }
}

/** Of a claim that nobody waited for: it names what the last owner has still under way. */
export async function releaseClaim(parts: ShardParts, clock: Clock): Promise<void> {
  const said = parts.journal.commit({ type: 'release', batches: inFlight(parts, clock.now()) })
  await withDeadline(clock, RELEASE_MS, said).catch(() => {})
}

/**
 * What runs here, and, while not all is restored, what the last owner said of attempts that run there: it tells whoever is
 * next. `handedOn`: whose results came from there and are told on from here, also past the deadline that the last owner gave.
 */
function inFlight(
  { batches, restoration, state }: ShardParts,
  now: number,
  handedOn: readonly BatchName[] = [],
): ReleaseRecord['batches'] {
  const running = batches.attempts.inFlight(now, 'anywhere')
  if (restoration.finished) return running.slice(0, MOST_NAMED)
  const deadlines = new Map(state.released)
  for (const batch of handedOn) deadlines.set(batchKey(batch), now + ATTEMPT_MS)
  for (const batch of running) deadlines.delete(batchKey(batch))
  const remoteAttempts = [...deadlines].flatMap(([key, deadline]) => {
    const batch = deadline > now ? state.batches.get(key) : undefined
    return batch ? [{ groupId: batch.groupId, version: batch.version, deadline }] : []
  })
  return [...running, ...remoteAttempts].slice(0, MOST_NAMED)
}

/** Those of `batches` that are named. */
function among(named: readonly BatchName[], batches: readonly BatchName[]): BatchName[] {
  const names = new Set(named.map(batchKey))
  return batches.filter((batch) => names.has(batchKey(batch)))
}
