/** A cache of bounded size without bookkeeping a use: what is not asked for while as many others come again is forgotten. */
export class Generations<K, V> {
  readonly #size: number
  #young = new Map<K, V>()
  #old = new Map<K, V>()

  /** `size`: entries that are kept at least; at most twice as many. */
  constructor(size: number) {
    this.#size = size
  }

  get(key: K): V | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old)
    return old
  }

  set(key: K, value: V): void {
    if (this.#young.size >= this.#size) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, value)
  }
}
