/**
 * Work of many names, one at a time of each name. Whoever asks for the same work before it begins shares it. Nobody's work
 * waits: who has gone leaves the line, and what nobody asks for any more does not begin.
 *
 * Invariant: of a name without work nothing is held.
 */
export interface SharedTurnsOptions {
  /** Requests in the line of one name, besides those whose work runs. */
  readonly mostQueued: number
  /** What rejects those beyond it, and those that have gone. */
  refusal(): Error
}

interface Asker {
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
  /** No longer leaves when it goes. */
  readonly stay: () => void
}

interface Shared {
  readonly work: () => Promise<unknown>
  readonly askers: Set<Asker>
}

interface Line {
  queued: number
  /** By key, in the order of their first askers. */
  readonly next: Map<string, Shared>
}

export class SharedTurns {
  readonly #options: SharedTurnsOptions
  readonly #lines = new Map<string, Line>()

  constructor(options: SharedTurnsOptions) {
    this.#options = options
  }

  /**
   * Settles as `work` does, or as that of another who asked with this key; it begins after this call. With nothing before
   * it, it begins at once, whether or not the asker has `gone`.
   */
  run<T>(name: string, key: string, work: () => Promise<T>, gone: AbortSignal): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const line = this.#lines.get(name)
    if (line === undefined) this.#begin(name, { work, askers: new Set([{ resolve, reject, stay() {} }]) })
    else if (gone.aborted || line.queued >= this.#options.mostQueued) reject(this.#options.refusal())
    else this.#queue(line, key, work, { resolve, reject, gone })
    return promise as Promise<T>
  }

  #begin(name: string, first: Shared): void {
    const line: Line = { queued: 0, next: new Map() }
    this.#lines.set(name, line)
    void this.#drain(name, line, first)
  }

  #queue(
    line: Line,
    key: string,
    work: () => Promise<unknown>,
    { resolve, reject, gone }: Pick<Asker, 'resolve' | 'reject'> & { gone: AbortSignal },
  ): void {
    const shared = line.next.get(key) ?? { work, askers: new Set() }
    line.next.set(key, shared)
    const leave = () => {
      shared.askers.delete(asker)
      line.queued--
      if (shared.askers.size === 0) line.next.delete(key)
      reject(this.#options.refusal())
    }
    const asker = { resolve, reject, stay: () => gone.removeEventListener('abort', leave) }
    gone.addEventListener('abort', leave, { once: true })
    shared.askers.add(asker)
    line.queued++
  }

  async #drain(name: string, line: Line, first: Shared): Promise<void> {
    for (let shared: Shared | undefined = first; shared !== undefined; ) {
      const tell = await outcomeOf(shared)
      // Before anybody is told: whoever asks again at once finds the line as it is.
      shared = this.#next(name, line)
      tell()
    }
  }

  #next(name: string, line: Line): Shared | undefined {
    for (const [key, shared] of line.next) {
      line.next.delete(key)
      line.queued -= shared.askers.size
      for (const { stay } of shared.askers) stay()
      return shared
    }
    this.#lines.delete(name)
    return undefined
  }
}

/** Tells the askers how the work ended. Never rejects. */
async function outcomeOf({ work, askers }: Shared): Promise<() => void> {
  try {
    const value = await work()
    return () => {
      for (const { resolve } of askers) resolve(value)
    }
  } catch (error) {
    return () => {
      for (const { reject } of askers) reject(error)
    }
  }
}
