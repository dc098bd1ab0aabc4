/**
 * Tells the events of the local provider, one after the other in their order. One that is not acknowledged stays, and the next
 * round tells it again. Several processes may tell the same event at once: whoever receives it reads the object anew.
 */

import type { Clock } from '../../runtime/clock.ts'
import { withDeadline } from '../../runtime/deadline.ts'
import { changed, type Surroundings } from './draft.ts'
import { told, untold } from './events.ts'
import type { LocalPaymentStore, SignedNotification } from './ports.ts'
import { signed } from './signature.ts'
import type { LocalEvent, LocalState } from './state.ts'

export interface TellingOptions {
  readonly store: LocalPaymentStore<LocalState>
  /** true: acknowledged. */
  readonly deliver: (notification: SignedNotification) => Promise<boolean>
  readonly clock: Clock
  readonly surroundings: () => Surroundings
  /** Telling failed; the next round tries again. */
  readonly onProblem: (error: unknown) => void
}

/** Events that are told before that is written down; after a crash they are told again. */
const BATCH = 20
/** Of one event, ms. */
const DELIVERY_MS = 10_000

export class Telling {
  readonly #options: TellingOptions
  #round: Promise<void> | undefined
  #next: Promise<void> | undefined

  constructor(options: TellingOptions) {
    this.#options = options
  }

  /** A round that begins after this call; resolves at its end. Never rejects. */
  round(): Promise<void> {
    if (this.#round === undefined) {
      this.#round = this.#run().finally(() => {
        this.#round = undefined
      })
      return this.#round
    }
    this.#next ??= this.#round.then(() => {
      this.#next = undefined
      return this.round()
    })
    return this.#next
  }

  async #run(): Promise<void> {
    const { store, onProblem } = this.#options
    try {
      const state = await store.read()
      if (state !== undefined) await this.#tellAll(state.secret, untold(state))
    } catch (error) {
      onProblem(error)
    }
  }

  /** Also what comes while it tells. Each event once a round. */
  async #tellAll(secret: string, first: LocalEvent[]): Promise<void> {
    const tried = new Set<string>()
    for (let waiting = first; waiting.length > 0; ) {
      const batch = waiting.slice(0, BATCH)
      for (const { eventId } of batch) tried.add(eventId)
      const left = await this.#tellBatch(secret, batch)
      waiting = left.filter(({ eventId }) => !tried.has(eventId))
    }
  }

  /** Answers what is to be told after it. */
  async #tellBatch(secret: string, batch: readonly LocalEvent[]): Promise<LocalEvent[]> {
    const acknowledged: string[] = []
    try {
      for (const event of batch) {
        if (await this.#deliver(secret, event)) acknowledged.push(event.eventId)
      }
    } catch (error) {
      await this.#noteTold(acknowledged)
      throw error
    }
    return this.#noteTold(acknowledged)
  }

  #deliver(secret: string, event: LocalEvent): Promise<boolean> {
    const { deliver, clock } = this.#options
    return withDeadline(clock, DELIVERY_MS, deliver(signed(secret, event, clock.now())))
  }

  /** Answers what is to be told now. */
  #noteTold(eventIds: readonly string[]): Promise<LocalEvent[]> {
    const { store, surroundings } = this.#options
    return store.change((document) => {
      if (document === undefined) throw new Error('the document of the local payment provider is gone')
      return changed(document, surroundings(), (draft) => {
        for (const eventId of eventIds) told(draft, eventId)
        return untold(draft.state)
      })
    })
  }
}
