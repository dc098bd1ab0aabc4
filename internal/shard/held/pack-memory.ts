/**
 * What an owner knows of the packs that it read, so that none is taken twice (docs/architecture/protocol.md, "Packs"):
 * the broker forgets message ids after two minutes, and a server that stood still may pass a pack on later.
 *
 * Invariant: what `news` tells is written behind the drops of all refused packs that it covers, and before the horizon
 * passes them. So every owner of the shard judges a pack alike.
 */
import { packNameOf } from '../../domain/pack-id.ts'
import type { SeenRecord } from '../journal/records.ts'
import type { SeenPacks } from '../journal/seen-packs.ts'

export class PackMemory {
  readonly #seen: SeenPacks
  /** Writers with news since the last record. */
  readonly #news = new Set<string>()

  /** @param seen as the journal tells at the claim. */
  constructor(seen: SeenPacks) {
    this.#seen = seen.copy()
  }

  /**
   * Notes the pack at `seq`, in the order of reading; false when it stands further below already. A predecessor has
   * judged what the journal covers: of that the journal says what is over.
   */
  admits(seq: number, packId: string): boolean {
    const name = packNameOf(packId)
    const known = this.#seen.has(name)
    this.#seen.note(name)
    if (!known) this.#news.add(name.writer)
    return !known || seq <= this.#seen.upTo
  }

  /** What was noted since the last call; null: nothing. Everything below `cursor` was read. */
  news(cursor: number): SeenRecord | null {
    if (this.#news.size === 0) return null
    const writers = [...this.#news].flatMap((writer) => {
      const number = this.#seen.get(writer)
      return number === undefined ? [] : [{ writer, number }]
    })
    this.#news.clear()
    this.#seen.upTo = cursor - 1
    return { type: 'seen', upTo: cursor - 1, writers }
  }
}
