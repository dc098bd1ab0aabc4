/**
 * Whose pass is next. Namespaces take turns, and none holds the workers that others need: a pass lasts as long as the service
 * and the Secrets of its namespace let it (docs/architecture/operator.md, "Whose turn it is"). Pure: time is an argument.
 *
 * - A namespace runs `OF_ONE` passes at once at most, and a further one only while more workers are free than it has. So each
 *   namespace that is greedy leaves about as many workers to the others as it takes.
 * - A namespace is slow for a while after a pass that took long. All slow ones together get half of the workers.
 * - A namespace is known to be quick once a pass of it was, and runs one at a time before. All others together get three
 *   quarters, so a quarter is there for those that are, however many new namespaces somebody makes.
 *
 * A key that may not begin waits for a pass that runs, so each end of a pass asks anew; nothing waits for a timer.
 */

/** Passes at once. They wait for the network most of the time; what bounds them is the memory that each may take. */
export const WORKERS = 16
/** Passes at once of one namespace. */
export const OF_ONE = 4
/** Workers that slow namespaces get together, and those that these get together with namespaces that are not known yet. */
const OF_SLOW = 0.5
const OF_UNKNOWN = 0.75
/** A pass that takes so long makes its namespace slow, ms. */
export const LONG_MS = 1_000
/** A namespace is slow for so long after such a pass ended, ms. */
export const SLOW_MS = 60_000
/** Namespaces that are remembered. */
const REMEMBERED = 10_000

/** How long passes of a namespace take, as far as it is known. */
type Pace = 'quick' | 'unknown' | 'slow'

export class Turns {
  readonly #workers: number
  /** Keys that may begin, in order, by namespace; the namespace whose turn it is comes first. */
  readonly #ready = new Map<string, Set<string>>()
  /** When each pass that runs began, monotonic ms, by key, the oldest first; by namespace. */
  readonly #running = new Map<string, Map<string, number>>()
  /** From when on a namespace counts as quick, monotonic ms. */
  readonly #quickFrom = new Map<string, number>()
  #depth = 0
  #passes = 0

  /** `workers`: passes at once, at least 2. */
  constructor(workers: number) {
    this.#workers = workers
  }

  /** Keys that wait. */
  get depth(): number {
    return this.#depth
  }

  /** The key waits for its turn; not one that waits or runs. */
  add(key: string): void {
    const namespace = namespaceOf(key)
    const keys = this.#ready.get(namespace) ?? new Set()
    this.#ready.set(namespace, keys.add(key))
    this.#depth++
  }

  /** The key that begins at `now`, monotonic ms; undefined: none may. */
  next(now: number): string | undefined {
    if (this.#passes >= this.#workers) return undefined
    const admitted = this.#admitted(now)
    for (const [namespace, keys] of this.#ready) {
      const pace = this.#paceOf(namespace, now)
      if (admitted.includes(pace) && this.#hasShare(namespace, pace)) return this.#begin(namespace, keys, now)
    }
    return undefined
  }

  /** The pass of the key ended at `now`. */
  end(key: string, now: number): void {
    const namespace = namespaceOf(key)
    const begun = this.#running.get(namespace)
    const begunAt = begun?.get(key)
    if (begun === undefined || begunAt === undefined) return
    begun.delete(key)
    if (begun.size === 0) this.#running.delete(namespace)
    this.#passes--
    const isLong = now - begunAt >= LONG_MS
    if (isLong || !this.#quickFrom.has(namespace)) this.#remember(namespace, isLong ? now + SLOW_MS : now)
  }

  /** Nothing waits any more. */
  clear(): void {
    this.#ready.clear()
    this.#depth = 0
  }

  #begin(namespace: string, keys: Set<string>, now: number): string {
    const key: string = keys.values().next().value!
    keys.delete(key)
    this.#ready.delete(namespace)
    if (keys.size > 0) this.#ready.set(namespace, keys)
    const begun = this.#running.get(namespace) ?? new Map<string, number>()
    this.#running.set(namespace, begun.set(key, now))
    this.#passes++
    this.#depth--
    return key
  }

  #hasShare(namespace: string, pace: Pace): boolean {
    const own = this.#running.get(namespace)?.size ?? 0
    return own < (pace === 'unknown' ? 1 : OF_ONE) && own < this.#workers - this.#passes
  }

  /** Those that may begin another pass, as far as it depends on their pace. */
  #admitted(now: number): readonly Pace[] {
    const passes = { quick: 0, unknown: 0, slow: 0 }
    for (const [namespace, { size }] of this.#running) passes[this.#paceOf(namespace, now)] += size
    if (passes.unknown + passes.slow >= this.#workers * OF_UNKNOWN) return ['quick']
    return passes.slow >= this.#workers * OF_SLOW ? ['quick', 'unknown'] : ['quick', 'unknown', 'slow']
  }

  #paceOf(namespace: string, now: number): Pace {
    const [oldest] = this.#running.get(namespace)?.values() ?? []
    if (oldest !== undefined && now - oldest >= LONG_MS) return 'slow'
    const quickFrom = this.#quickFrom.get(namespace)
    if (quickFrom === undefined) return 'unknown'
    return now < quickFrom ? 'slow' : 'quick'
  }

  #remember(namespace: string, quickFrom: number): void {
    this.#quickFrom.delete(namespace)
    this.#quickFrom.set(namespace, quickFrom)
    if (this.#quickFrom.size > REMEMBERED) this.#quickFrom.delete(this.#quickFrom.keys().next().value!)
  }
}

/** Of `namespace/name`. */
export function namespaceOf(key: string): string {
  const end = key.indexOf('/')
  return end < 0 ? key : key.slice(0, end)
}
