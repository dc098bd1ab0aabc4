/** One kind of resource, kept in one store by a reflector for each watched namespace, or one for all. */
import { Cache } from '../controller/cache.ts'
import type { Indexers, Named } from '../controller/ports.ts'
import { Reflector, type ReflectorOptions } from './reflector.ts'

export type WatchedOptions<T> = Omit<ReflectorOptions<T>, 'namespace' | 'replica'> & {
  /** undefined: all. */
  namespaces: readonly string[] | undefined
  indexers?: Indexers<T>
}

export class Watched<T extends Named> {
  readonly store: Cache<T>
  readonly #options: WatchedOptions<T>
  readonly #reflectors: readonly Reflector<T>[]
  #isSynced = false

  constructor(options: WatchedOptions<T>) {
    const { namespaces, indexers, ...common } = options
    this.#options = options
    this.store = new Cache<T>({
      ...(indexers === undefined ? {} : { indexers }),
      onFault: (err, resource) => options.log.warn({ err, resource }, 'a resource could not be taken up'),
    })
    this.#reflectors = (namespaces ?? [undefined]).map(
      (namespace) =>
        new Reflector<T>({
          ...common,
          replica: this.store,
          ...(namespace === undefined ? {} : { namespace }),
        }),
    )
  }

  /** Until `signal` is aborted; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.run(signal)))
  }

  /** Whether the store has shown everything once: before, what is not in it may be there all the same. */
  get isSynced(): boolean {
    return this.#isSynced
  }

  /** Resolves once `isSynced`; never, when the run is stopped before. */
  async synced(): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.synced))
    this.#isSynced = true
  }

  /** Seconds since the API server last gave a sign of life, where that is longest ago; undefined: it never did everywhere. */
  silentSeconds(): number | undefined {
    const heard = this.#reflectors.map(({ heardAt }) => heardAt)
    if (heard.includes(undefined)) return undefined
    return (this.#options.clock.monotonic() - Math.min(...(heard as number[]))) / 1_000
  }
}
