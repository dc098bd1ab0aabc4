/** Which entries of a list are new, when the list is asked for again and again. */

/** Entries may come out of order by so much, ms: several processes write them, each by its own clock. */
export const DISORDER_MS = 60_000

export interface Entry {
  readonly id: string
  /** Unix milliseconds. */
  readonly createdAt: number
}

/** Remembers what it has told, as far back as entries may come late. */
export class Followed<T> {
  readonly #entryOf: (value: T) => Entry
  readonly #told = new Map<string, number>()
  #newest = 0

  constructor(entryOf: (value: T) => Entry) {
    this.#entryOf = entryOf
  }

  /** Nothing before this moment can be new, Unix ms; 0 at first. */
  get horizon(): number {
    return Math.max(0, this.#newest - DISORDER_MS)
  }

  /** Those that were not told yet, oldest first. `page`: newest first. */
  take(page: readonly T[]): T[] {
    const horizon = this.horizon
    const isNew = (value: T) => {
      const { id, createdAt } = this.#entryOf(value)
      return createdAt >= horizon && !this.#told.has(id)
    }
    const found = page.filter(isNew).reverse()
    for (const { id, createdAt } of found.map(this.#entryOf)) {
      this.#told.set(id, createdAt)
      this.#newest = Math.max(this.#newest, createdAt)
    }
    for (const [id, createdAt] of this.#told) if (createdAt < this.horizon) this.#told.delete(id)
    return found
  }
}
