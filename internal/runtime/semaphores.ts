/** A semaphore for each of many names. Invariant: of a name whose slots are all free nothing is held. */
import { Semaphore } from './semaphore.ts'

export class Semaphores {
  readonly #slots: number
  readonly #held = new Map<string, Semaphore>()

  /** `slots` of each name: 1 or more; Infinity: work never waits. */
  constructor(slots: number) {
    this.#slots = slots
  }

  /** Names that hold a slot. */
  get size(): number {
    return this.#held.size
  }

  /** Runs `work` once a slot of this name is free, in the order of the calls. Settles as `work` does. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (this.#slots === Number.POSITIVE_INFINITY) return work()
    let semaphore = this.#held.get(name)
    if (semaphore === undefined) {
      semaphore = new Semaphore(this.#slots)
      this.#held.set(name, semaphore)
    }
    await semaphore.acquire()
    try {
      return await work()
    } finally {
      semaphore.release()
      // A slot that is handed on stays held, so whoever waits keeps the name.
      if (semaphore.held === 0) this.#held.delete(name)
    }
  }
}
