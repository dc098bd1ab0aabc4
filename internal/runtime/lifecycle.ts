/**
 * The life of a process: what it acquires is released in reverse order, whatever ends it. SIGTERM, SIGINT
 * and SIGHUP drain; the process then exits with 0 when everything was released in time, else with 1.
 */
import type { Clock } from './clock.ts'

export interface LifecycleLog {
  info(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
  fatal(fields: Record<string, unknown>, message: string): void
}

/** All releases together, ms, unless said otherwise: the contract is an exit within 15 s. */
export const SHUTDOWN_BUDGET_MS = 14_000

interface Held {
  name: string
  release: () => unknown
}

/** Resources of one process. Invariant: each is released once, after all that were acquired later. */
export class Lifecycle {
  #clock: Clock
  #log: LifecycleLog
  #budgetMs: number
  #held: Held[] = []
  #starting = new Set<Promise<unknown>>()
  #abort = new AbortController()
  #shutdown: Promise<Error[]> | undefined

  constructor(clock: Clock, log: LifecycleLog, budgetMs = SHUTDOWN_BUDGET_MS) {
    this.#clock = clock
    this.#log = log
    this.#budgetMs = budgetMs
  }

  get stopping(): boolean {
    return this.#shutdown !== undefined
  }

  /**
   * Starts something and remembers its release. While the process stops it rejects with StoppingError;
   * `signal` tells a start that the stop has overtaken it.
   */
  async acquire<T>(
    name: string,
    start: (signal: AbortSignal) => T | Promise<T>,
    release: (resource: T) => unknown,
  ): Promise<T> {
    this.#refuseWhileStopping()
    const starting = Promise.resolve(start(this.#abort.signal)).then((resource) => {
      this.#held.push({ name, release: () => release(resource) })
      return resource
    })
    this.#starting.add(starting)
    try {
      const resource = await starting
      this.#refuseWhileStopping()
      return resource
    } catch (error) {
      throw this.stopping ? new StoppingError('the process is stopping', { cause: error }) : error
    } finally {
      this.#starting.delete(starting)
    }
  }

  /** Releases everything, newest first; resolves with what failed or took longer than its share. Repeating it joins the first call. */
  shutdown(): Promise<Error[]> {
    this.#shutdown ??= this.#releaseAll()
    return this.#shutdown
  }

  async #releaseAll(): Promise<Error[]> {
    const errors: Error[] = []
    const end = this.#clock.monotonic() + this.#budgetMs
    this.#abort.abort()
    // A start that is under way may leave something to release: it ends first.
    const starts = Promise.allSettled(this.#starting)
    const late = await this.#within(end, { name: 'the start', release: () => starts })
    if (late !== undefined) errors.push(late)
    for (const held of this.#held.splice(0).reverse()) {
      const error = await this.#within(end, held)
      if (error !== undefined) errors.push(error)
    }
    return errors
  }

  async #within(end: number, held: Held): Promise<Error | undefined> {
    let cancel = () => {}
    const timeout = new Promise<Error>((resolve) => {
      const late = () => resolve(new Error(`${held.name} was not released in time`))
      cancel = this.#clock.after(Math.max(0, end - this.#clock.monotonic()), late)
    })
    const error = await Promise.race([this.#release(held), timeout])
    cancel()
    return error
  }

  async #release(held: Held): Promise<Error | undefined> {
    try {
      await held.release()
      return undefined
    } catch (cause) {
      const error = new Error(`${held.name} was not released: ${String(cause)}`, { cause })
      this.#log.error({ err: error, resource: held.name }, 'release failed')
      return error
    }
  }

  #refuseWhileStopping(): void {
    if (this.stopping) throw new StoppingError('the process is stopping')
  }
}

/** The start was overtaken by a stop: no failure. */
export class StoppingError extends Error {
  override readonly name = 'StoppingError'
}
