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

  /** How many wait for a slot of this name now. */
  waiting(name: string): number {
    return this.#held.get(name)?.waiting ?? 0
  }

  /**
   * Runs `work` once a slot of this name is free, in the order of the calls. Settles as `work` does. The slot of a work that
   * succeeds stays held until `after`, called then, resolves too.
   */
  async run<T>(name: string, work: () => Promise<T>, after?: () => Promise<void>): Promise<T> {
    if (this.#slots === Number.POSITIVE_INFINITY) return work()
    const semaphore = this.#of(name)
    await semaphore.acquire()
    let isHeld = false
    try {
      const result = await work()
      if (after !== undefined) {
        isHeld = true
        void after().finally(() => this.#release(name, semaphore))
      }
      return result
    } finally {
      if (!isHeld) this.#release(name, semaphore)
    }
  }

  #of(name: string): Semaphore {
    const known = this.#held.get(name)
    if (known !== undefined) return known
    const semaphore = new Semaphore(this.#slots)
    this.#held.set(name, semaphore)
    return semaphore
  }

  #release(name: string, semaphore: Semaphore): void {
    semaphore.release()
    // A slot that is handed on stays held, so whoever waits keeps the name.
    if (semaphore.held === 0) this.#held.delete(name)
  }
}
