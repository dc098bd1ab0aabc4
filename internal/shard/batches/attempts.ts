/**
 * Attempts of sealed batches: those that run here, and those that still run at the last owner. Each ends with a result,
 * or was withdrawn because nothing was sent.
 *
 * Invariant: once results were passed on to the next owner, none of them is an event here any more.
 */
import { sleep } from '../../runtime/sleep.ts'
import type { OpenGroup } from '../held/live.ts'
import type { AttemptResult } from '../ports.ts'
import { SERIALIZER, UnknownSerializerError } from './body.ts'
import { type DeliveryScheduler, type SealedBatch, UNSENT } from './delivery-scheduler.ts'
import type { AttemptName, PassedResults } from './handover.ts'
import type { BatchesOwner } from './owner.ts'

/** Before an attempt that could not begin is tried again; twice as long each further time, up to the longest. */
const UNSENT_PAUSE_MS = 200
const LONGEST_UNSENT_PAUSE_MS = 6_400
/** Before a batch that only a newer version can build is looked at again, if nobody took the shard meanwhile. */
const UNBUILDABLE_PAUSE_MS = 60_000
/** An attempt takes at most so long (docs/reference/api.md, "Limits"), with some time for its result to arrive. */
export const ATTEMPT_MS = 11_000
/** A result that came before its buffer was known is looked at again after this. */
const CONFIGURED_EVERY_MS = 50

interface AttemptEvents {
  /** The destination answered, or failed to. */
  ended(sealed: SealedBatch, result: AttemptResult): void
  /** Nothing was sent. The batch may be attempted again after `pauseMs`. */
  withdrawn(sealed: SealedBatch, pauseMs: number): void
  /** The body cannot be built. Rejects when that is not the batch's fault. */
  unbuildable(sealed: SealedBatch, error: unknown): Promise<void>
}

export interface AttemptsOptions extends Pick<BatchesOwner, 'clock' | 'remoteAttempts' | 'mayAct'> {
  readonly scheduler: DeliveryScheduler
}

export class Attempts {
  readonly #options: AttemptsOptions
  readonly #events: AttemptEvents
  /** Those whose request was sent and whose result is no event yet. */
  readonly #running = new Set<SealedBatch>()
  /** Those that run at the last owner. */
  readonly #remote = new Set<SealedBatch>()
  /** How often in a row nothing could be sent. */
  readonly #unsent = new WeakMap<SealedBatch, number>()
  #draining = false
  #stopped = false
  #passed: PassedResults | undefined

  constructor(options: AttemptsOptions, events: AttemptEvents) {
    this.#options = options
    this.#events = events
  }

  /** Those that run, here or at the last owner. */
  get count(): number {
    return this.#running.size + this.#remote.size
  }

  /**
   * Batches whose attempt runs, with the latest end of each, Unix ms. An attempt that waits for its turn is none of them:
   * after `drain` it never begins.
   */
  inFlight(now: number, where: 'here' | 'anywhere'): (AttemptName & { deadline: number })[] {
    const remote = where === 'anywhere' ? this.#remote : []
    const deadline = now + ATTEMPT_MS
    return [...this.#running, ...remote].map((sealed) => ({ ...attemptNameOf(sealed), deadline }))
  }

  /** From now on no attempt begins. What runs is finished, and what waits for its turn is withdrawn. */
  drain(): void {
    this.#draining = true
  }

  /** After `drain`: results of what still runs are no longer this owner's to commit. */
  passOn(passed: PassedResults): void {
    this.#passed = passed
  }

  stop(): void {
    this.#stopped = true
    this.#draining = true
  }

  /** One attempt here, when its turn comes. Rejects when the shard cannot go on. */
  async begin(sealed: SealedBatch): Promise<void> {
    const { scheduler, mayAct } = this.#options
    const { group } = sealed
    const mayBegin = () => !this.#draining && mayAct() && isActive(group)
    try {
      const result = await scheduler.attempt(sealed, mayBegin, () => this.#running.add(sealed))
      this.#ended(sealed, result, this.#pauseAfter(sealed, result))
    } catch (error) {
      this.#running.delete(sealed)
      if (error instanceof UnknownSerializerError) return this.#events.withdrawn(sealed, UNBUILDABLE_PAUSE_MS)
      await this.#events.unbuildable(sealed, error)
    }
  }

  /** A batch waits at most twice as long as there is no room for it, and a crowd of them asks less and less often. */
  #pauseAfter(sealed: SealedBatch, result: AttemptResult | null): number {
    const before = this.#unsent.get(sealed) ?? 0
    if (result?.unsent) this.#unsent.set(sealed, before + 1)
    else this.#unsent.delete(sealed)
    return result?.unsent ? Math.min(UNSENT_PAUSE_MS * 2 ** before, LONGEST_UNSENT_PAUSE_MS) : UNSENT_PAUSE_MS
  }

  /** The attempt at the last owner. Should its result not come in time, the batch is attempted here. */
  async awaitRemote(sealed: SealedBatch): Promise<void> {
    const { group, batch } = sealed
    this.#remote.add(sealed)
    const result = await this.#options.remoteAttempts.result({ groupId: group.id, version: batch.version })
    this.#remote.delete(sealed)
    // From here on its result is this owner's to tell.
    this.#running.add(sealed)
    await this.#untilConfigured(group)
    // A node that cannot build the body cannot store it as a dead letter either: it leaves failures to one that can.
    const usable = result?.delivered || sealed.seal.serializer <= SERIALIZER
    this.#ended(sealed, usable ? result : null, 0)
  }

  /** What a result means depends on the buffer: how often it may fail, and whether the log shows it. */
  async #untilConfigured(group: OpenGroup): Promise<void> {
    while (group.machine.policy.state === 'unknown' && !this.#passed && !this.#stopped)
      await sleep(this.#options.clock, CONFIGURED_EVERY_MS)
  }

  /** Right before the result is an event, or is told: an attempt that is neither would be sent again. */
  #ended(sealed: SealedBatch, result: AttemptResult | null, pauseMs: number): void {
    this.#running.delete(sealed)
    if (this.#passed) this.#passed.tell(attemptNameOf(sealed), result ?? UNSENT)
    else if (this.#stopped) return
    else if (result && !result.unsent) this.#events.ended(sealed, result)
    else this.#events.withdrawn(sealed, pauseMs)
  }
}

/** Groups learn in slices that their node may have been replaced, or their buffer disabled; nothing is sent meanwhile. */
function isActive({ machine, buffer }: OpenGroup): boolean {
  return machine.policy.state === 'active' && buffer.policy.state === 'active'
}

function attemptNameOf({ group, batch }: SealedBatch): AttemptName {
  return { groupId: group.id, version: batch.version, attempt: batch.attempt }
}
