/** The line of one process to everything outside: requests and answers get lost, and at every write the process may die or freeze. */
import type { Events, ProcessLife } from './events.ts'

/** Requests or answers that get lost; the caller learns after a while that none came. */
const LOST = 0.04
const NO_ANSWER_MS = 200
const LATENCY_MS = 6
/** A store that is slow now and then, ms. */
const SLOW = { share: 0.3, least: 100, most: 1_500 }
/** Writes at which the process dies, and at which it freezes. */
const DEATHS = 0.007
const FREEZES = 0.006
/** Requests that are on their way for longer than their process waits for them, or lives, ms. */
const LATE = { share: 0.25, least: 50, most: 4_000 }

export class Line {
  readonly #events: Events
  readonly #life: ProcessLife
  readonly #faulty: () => boolean
  readonly #connection: () => number | null

  /** `connection`: changes when what stood in it is gone; null: there is none now. */
  constructor(
    events: Events,
    life: ProcessLife,
    faulty: () => boolean,
    connection: () => number | null = () => 0,
  ) {
    this.#events = events
    this.#life = life
    this.#faulty = faulty
    this.#connection = connection
  }

  /** Request, atomic step, answer; either way may get lost: then it rejects after a while, done or not. */
  ask<T>(step: () => T, delayMs = 0): Promise<T> {
    const events = this.#events
    const connection = this.#connection()
    const broken = () => connection === null || this.#connection() !== connection
    return new Promise((resolve, reject) => {
      const lost = this.#strikes(LOST)
      const before = events.random() < 0.5
      const giveUp = () => this.#life.after(NO_ANSWER_MS, () => reject(new Error('no answer')))
      if ((lost && before) || broken()) return giveUp()
      events.after(delayMs + this.#latency(), () => {
        // What was on its way when the process died arrives or not.
        if (this.#life.killed && events.random() < 0.5) return
        if (broken()) return giveUp()
        const value = step()
        if (lost) return giveUp()
        this.#life.after(this.#latency(), () => (broken() ? giveUp() : resolve(value)))
      })
    })
  }

  /** As `ask`, for what changes something: the process may die, or freeze with the request inside or already on its way. */
  act<T>(step: () => T): Promise<T> {
    if (this.#strikes(DEATHS)) this.#life.kill()
    return this.ask(step, this.#strikes(FREEZES) ? this.#freeze() : 0)
  }

  /**
   * As `act`, for what may come late: behind whatever others did meanwhile, when nobody waits for it any more. `twice`: it may also
   * come late once more.
   */
  actLate(step: () => void, twice: boolean): Promise<void> {
    if (twice && this.#strikes(LATE.share)) this.#doLate(step)
    if (!this.#strikes(LATE.share)) return this.act(step)
    this.#doLate(step)
    return this.noAnswer()
  }

  #doLate(step: () => void): void {
    const connection = this.#connection()
    this.#events.after(this.#events.between(LATE.least, LATE.most), () => {
      if (connection !== null && this.#connection() === connection) step()
    })
  }

  /** The caller learns after a while that no answer came. */
  noAnswer(): Promise<never> {
    return new Promise((_, reject) => {
      this.#life.after(NO_ANSWER_MS, () => reject(new Error('no answer')))
    })
  }

  /** Before a step on a store that takes its time. */
  whenSlow(): Promise<void> {
    const ms = this.#strikes(SLOW.share) ? this.#events.between(SLOW.least, SLOW.most) : 0
    return new Promise((resume) => void this.#life.after(ms, resume))
  }

  /** Between two stores: sometimes the process dies before the second one has what the first one has. */
  endanger(share: number): void {
    if (this.#strikes(share)) this.#events.after(this.#events.between(0, 15), () => this.#life.kill())
  }

  /** Sometimes the process freezes between a decision and its write, long enough for another owner to take over. */
  hesitate(share: number): Promise<void> {
    if (this.#strikes(share)) this.#life.freeze(this.#events.between(200, 4_000))
    return new Promise((resume) => this.#life.after(0, resume))
  }

  /** @returns how long the request stays inside, ms. */
  #freeze(): number {
    const ms = this.#events.between(200, 4_000)
    this.#life.freeze(ms)
    return this.#events.random() < 0.5 ? ms : 0
  }

  #strikes(share: number): boolean {
    return this.#faulty() && this.#events.random() < share
  }

  #latency(): number {
    return this.#events.between(0, LATENCY_MS)
  }
}
