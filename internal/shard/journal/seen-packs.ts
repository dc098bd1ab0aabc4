/**
 * Which packs were seen of each writer, so that none is taken twice (docs/architecture/protocol.md, "Packs"): the broker forgets message
 * ids after two minutes, and a server that stood still may pass a pack on later. The number of a writer's last pack tells, because its
 * packs first stand in an inbox in the order of their numbers.
 *
 * The fold knows what is committed. An owner notes in a copy of it what it reads, and tells the `news`.
 *
 * Invariants: a pack is never taken for a repeated one unless this writer's number, or a later one, was noted. What is
 * forgotten past the bound makes repeated packs look new, and never new ones repeated. What `news` tells is written behind the drops of
 * all refused packs that it covers, and before the horizon passes them. So every owner of the shard judges a pack alike.
 */
import { type PackName, packNameOf } from '../../domain/pack-id.ts'
import type { SeenRecord } from './records.ts'

/** Writers that are remembered, a restart of an ingress each; about 100 bytes each. */
const MOST_WRITERS = 4_096

export class SeenPacks {
  /** The writer that was noted last comes last. */
  readonly #last = new Map<string, number>()
  readonly #most: number
  /** Writers with news since the last record. */
  readonly #news = new Set<string>()
  /** Every pack up to this inbox sequence is noted. */
  #upTo = 0

  constructor(most = MOST_WRITERS) {
    this.#most = most
  }

  /** false: it covers no more than what is known. */
  apply({ upTo, writers }: SeenRecord): boolean {
    if (upTo <= this.#upTo) return false
    this.#upTo = upTo
    for (const name of writers) this.#note(name)
    return true
  }

  /**
   * Notes the pack at `seq`, in the order of reading; false when it stands further below already. A predecessor has
   * judged what the journal covers: of that the journal says what is over.
   */
  admits(seq: number, packId: string): boolean {
    const name = packNameOf(packId)
    const known = name.number <= (this.#last.get(name.writer) ?? -1)
    this.#note(name)
    if (!known) this.#news.add(name.writer)
    return !known || seq <= this.#upTo
  }

  /** What was admitted since the last call; null: nothing. Everything below `cursor` was read. */
  news(cursor: number): SeenRecord | null {
    if (this.#news.size === 0) return null
    this.#upTo = cursor - 1
    const record = this.#recordOf(this.#news)
    this.#news.clear()
    return record
  }

  /** All that is known. */
  record(): SeenRecord {
    return this.#recordOf(this.#last.keys())
  }

  #recordOf(writers: Iterable<string>): SeenRecord {
    const known = [...writers].flatMap((writer) => {
      const number = this.#last.get(writer)
      return number === undefined ? [] : [{ writer, number }]
    })
    return { type: 'seen', upTo: this.#upTo, writers: known }
  }

  #note({ writer, number }: PackName): void {
    const last = this.#last.get(writer)
    this.#last.delete(writer)
    this.#last.set(writer, last === undefined ? number : Math.max(last, number))
    const [oldest] = this.#last.keys()
    if (this.#last.size > this.#most) this.#last.delete(oldest!)
  }

  /** Without news. */
  copy(): SeenPacks {
    const copy = new SeenPacks(this.#most)
    copy.#upTo = this.#upTo
    for (const [writer, number] of this.#last) copy.#last.set(writer, number)
    return copy
  }
}
