/** What owners tell ingresses of explicit items: true when they say it, and said of every pack that asks for it. */
import { decodeAnswer, decodeVerdict, type Fate } from '../../../../internal/domain/verdict.ts'
import { type Items, liveOriginalOf, type StoredItem } from '../items.ts'
import type { Owner } from '../owner.ts'
import type { Truth } from '../truth.ts'

interface Pack {
  readonly seq: number
  /** Indexes of its explicit items. */
  readonly explicit: readonly number[]
  told: boolean
  /** A power cut took it. */
  lost?: boolean
}

export class VerdictJudge {
  readonly #items: Items
  readonly #truth: Truth
  readonly #wrong: string[]
  readonly #now: () => number
  readonly #dropMemoryMs: number
  /** Packs that name a subject for their verdict, by id. */
  readonly #packs = new Map<string, Pack>()
  /** Positions that were asked about, by the id of the question. */
  readonly #asked = new Map<number, { readonly seq: number; readonly indexes: readonly number[] }>()

  /** `dropMemoryMs`: so long a drop is remembered at least; 0 where the clocks of owners are wrong at times. */
  constructor(
    items: Items,
    truth: Truth,
    wrong: string[],
    { now, dropMemoryMs }: { now: () => number; dropMemoryMs: number },
  ) {
    this.#dropMemoryMs = dropMemoryMs
    this.#items = items
    this.#truth = truth
    this.#wrong = wrong
    this.#now = now
  }

  /** A pack is stored whose ingress waits for a verdict. */
  awaited(packId: string, seq: number, explicit: readonly number[]): void {
    const known = this.#packs.get(packId)
    // The owner refuses what is stored again: the verdict is that on the first one. Where it stood before, it was perhaps read before.
    if (!known || (known.lost && known.seq !== seq)) this.#packs.set(packId, { seq, explicit, told: false })
    else known.lost = false
  }

  asked(id: number, seq: number, indexes: readonly number[]): void {
    this.#asked.set(id, { seq, indexes })
  }

  /** Packs from this sequence on are gone from the inbox. */
  lost(from: number): void {
    for (const pack of this.#packs.values()) if (pack.seq >= from) pack.lost = true
    for (const [id, { seq }] of this.#asked) if (seq >= from) this.#asked.delete(id)
  }

  /** An owner says it, whether or not it arrives. */
  said(owner: Owner, data: Uint8Array): void {
    if (owner.killed) return
    const verdict = decodeVerdict(data)
    const pack = verdict && this.#packs.get(verdict.packId)
    if (pack) pack.told = true
    // It goes by what a power cut took.
    if (owner.misled) return
    if (pack) {
      const named = new Map(verdict.duplicates.map(({ index, of }) => [index, of]))
      for (const index of pack.explicit) {
        const of = named.get(index)
        this.#told(owner, pack.seq, index, of === undefined ? { kind: 'new' } : { kind: 'duplicate', of })
      }
    }
    const answer = decodeAnswer(data)
    const asked = answer?.kind === 'position' ? this.#asked.get(answer.id) : undefined
    // Whose clock is ahead takes packs for too old to be answered, and their ingresses ask.
    const isTold = this.#dropMemoryMs === 0 && answer?.kind === 'position' && answer.fates.every(isKnown)
    if (isTold) for (const each of this.#packs.values()) if (each.seq === asked?.seq) each.told = true
    if (answer?.kind === 'position' && asked)
      for (const [at, fate] of answer.fates.entries()) this.#told(owner, asked.seq, asked.indexes[at]!, fate)
  }

  /** When everything is settled, every one of these was read and judged by somebody. */
  missing(): string[] {
    const silent = [...this.#packs].filter(([, { told, lost }]) => !told && !lost)
    return silent.map(([packId, { seq }]) => `no verdict on the pack ${packId} at ${seq}`)
  }

  #told(owner: Owner, seq: number, index: number, fate: Fate): void {
    const item = this.#items.at({ seq, index })
    if (!item || fate.kind === 'unknown') return
    if (fate.kind === 'duplicate') this.#toldDuplicate(item)
    // Who lost its shard may have dropped in vain what an item then is the original for.
    else if (owner.epoch === this.#truth.epoch) this.#toldNew(item)
  }

  #toldDuplicate({ itemId, end }: StoredItem): void {
    if (end?.how !== 'drop') this.#wrong.push(`told duplicate before it was dropped: ${itemId}`)
  }

  #toldNew(item: StoredItem): void {
    const original = liveOriginalOf(item)
    const { end, itemId } = item
    if (end?.how === 'drop' && this.#now() - end.at < this.#dropMemoryMs)
      this.#wrong.push(`told new after it was dropped: ${itemId}`)
    else if (end === null && original)
      this.#wrong.push(`missed duplicate: ${itemId} is told new, and ${original.itemId} is live`)
    item.toldNew = true
  }
}

function isKnown({ kind }: Fate): boolean {
  return kind !== 'unknown'
}
