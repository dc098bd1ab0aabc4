/**
 * The resources of one kind, kept by reflectors, read by passes. Invariant: listeners hear of a change after the store and
 * its indexes show it, and a resource that was deleted and made anew under its name is told as gone and as new, even
 * where nobody saw it gone.
 */
import { type Change, type Indexers, keyOf, type Named, type Store } from './ports.ts'

export interface CacheOptions<T> {
  indexers?: Indexers<T>
  /** A resource that an index or a listener fails on is left out or untold; it must not stop the others. */
  onFault(error: unknown, key: string): void
}

type Index<T> = Map<string, Map<string, T>>

export class Cache<T extends Named> implements Store<T> {
  readonly #objects = new Map<string, T>()
  readonly #indexers: Indexers<T>
  readonly #indexes: ReadonlyMap<string, Index<T>>
  readonly #listeners: ((change: Change<T>) => void)[] = []
  readonly #onFault: CacheOptions<T>['onFault']

  constructor({ indexers = {}, onFault }: CacheOptions<T>) {
    this.#indexers = indexers
    this.#indexes = new Map(Object.keys(indexers).map((name) => [name, new Map()]))
    this.#onFault = onFault
  }

  get size(): number {
    return this.#objects.size
  }

  get(key: string): T | undefined {
    return this.#objects.get(key)
  }

  list(): readonly T[] {
    return [...this.#objects.values()]
  }

  byIndex(index: string, value: string): readonly T[] {
    const found = this.#indexes.get(index)
    if (!found) throw new Error(`no index ${index}`)
    return [...(found.get(value)?.values() ?? [])]
  }

  /** Whom to tell of each change from now on. */
  subscribe(listener: (change: Change<T>) => void): void {
    this.#listeners.push(listener)
  }

  put(object: T): void {
    const key = keyOf(object)
    const before = this.#objects.get(key)
    if (before && before.metadata?.uid !== object.metadata?.uid) {
      this.#exchange(key, before, undefined)
      this.#exchange(key, undefined, object)
    } else this.#exchange(key, before, object)
  }

  /** A deletion that speaks of another resource of the same name than the one that is held changes nothing. */
  remove(object: T): void {
    const key = keyOf(object)
    const before = this.#objects.get(key)
    if (before && before.metadata?.uid === object.metadata?.uid)
      this.#exchange(key, before, undefined, object)
  }

  /**
   * What a list found is all there is of a namespace (undefined: of all of them). Resources that stand there as they are
   * held are no change.
   */
  replace(objects: readonly T[], namespace: string | undefined): void {
    const found = new Set(objects.map(keyOf))
    const gone = [...this.#objects].filter(([key, held]) => isIn(held, namespace) && !found.has(key))
    for (const [key, held] of gone) this.#exchange(key, held, undefined)
    for (const object of objects) {
      if (!isSame(this.#objects.get(keyOf(object)), object)) this.put(object)
    }
  }

  #exchange(key: string, before: T | undefined, after: T | undefined, last?: T): void {
    try {
      // Both before anything is touched: an indexer that throws leaves the indexes as they were.
      const left = before ? this.#places(before) : []
      const entered = after ? this.#places(after) : []
      for (const [index, value] of left) leave(index, value, key)
      for (const [index, value] of entered) enter(index, value, key, after!)
      if (after) this.#objects.set(key, after)
      else this.#objects.delete(key)
      this.#tell({ key, ...(before && { before }), ...(after && { after }), ...(last && { last }) })
    } catch (error) {
      this.#onFault(error, key)
    }
  }

  #places(object: T): [Index<T>, string][] {
    return [...this.#indexes].flatMap(([name, index]) =>
      this.#indexers[name]!(object).map((value): [Index<T>, string] => [index, value]),
    )
  }

  #tell(change: Change<T>): void {
    for (const listener of this.#listeners) {
      try {
        listener(change)
      } catch (error) {
        this.#onFault(error, change.key)
      }
    }
  }
}

function enter<T>(index: Index<T>, value: string, key: string, object: T): void {
  const entries = index.get(value) ?? new Map<string, T>()
  index.set(value, entries.set(key, object))
}

function leave<T>(index: Index<T>, value: string, key: string): void {
  const entries = index.get(value)
  entries?.delete(key)
  if (entries?.size === 0) index.delete(value)
}

function isIn(object: Named, namespace: string | undefined): boolean {
  return namespace === undefined || object.metadata?.namespace === namespace
}

function isSame(held: Named | undefined, object: Named): boolean {
  return (
    held?.metadata?.uid === object.metadata?.uid &&
    held?.metadata?.resourceVersion === object.metadata?.resourceVersion
  )
}
