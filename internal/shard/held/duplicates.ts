/**
 * Deduplication by the owner (docs/architecture/protocol.md, "Duplicates and verdicts"): the explicit message ids of
 * all buffered items, the drops of their duplicates, and what ingresses are told about them.
 *
 * Invariant: a drop is committed before anybody is told of it.
 */
import {
  type Answer,
  type Ask,
  type Duplicate,
  decodeAsk,
  encodeAnswer,
  encodeVerdict,
  type Fate,
} from '../../domain/verdict.ts'
import type { Broker } from '../broker.ts'
import type { Journal } from '../journal/journal.ts'
import type { Position } from '../journal/records.ts'
import type { FoldState } from '../journal/state.ts'
import type { LiveItem, LiveItems } from './live.ts'

/** A pack whose explicit items wait for their verdicts. */
export class PackVerdict {
  readonly packId: string
  readonly replySubject: string
  readonly duplicates: Duplicate[] = []
  /** Drops on their way to the journal, and the reading of the pack itself. */
  pending = 1

  constructor(packId: string, replySubject: string) {
    this.packId = packId
    this.replySubject = replySubject
  }
}

interface DuplicatesOptions {
  readonly broker: Pick<Broker, 'publish' | 'tell'>
  readonly journal: Journal
  readonly state: FoldState
  readonly live: LiveItems
  /** The drop of one duplicate is committed. */
  readonly onDropped: () => void
}

export class Duplicates {
  readonly #options: DuplicatesOptions
  /** By message id, which the items hold anyway; where groups share one, by group id below it. */
  readonly #originals = new Map<string, LiveItem | Map<string, LiveItem>>()
  /** Item ids whose drop is not committed yet, with their inbox sequences: they hold the horizon back. */
  readonly #dropping = new Map<string, number>()
  /** What waits for the youngest drop on its way: once that is committed, so are all older ones. null: none is. */
  #afterDrops: (() => void)[] | null = null

  constructor(options: DuplicatesOptions) {
    this.#options = options
  }

  /** The lowest inbox sequence of a drop that is not committed. */
  get lowestDropping(): number | undefined {
    for (const seq of this.#dropping.values()) return seq
    return undefined
  }

  /** The buffered item of this group with this message id. */
  original(groupId: string, messageId: string): LiveItem | undefined {
    const found = this.#originals.get(messageId)
    if (found instanceof Map) return found.get(groupId)
    return found?.group.id === groupId ? found : undefined
  }

  isDropping(itemId: string): boolean {
    return this.#dropping.size > 0 && this.#dropping.has(itemId)
  }

  /** A buffered item with an explicit id: its later duplicates are dropped while it is buffered. */
  add(item: LiveItem): void {
    if (item.messageId === null || this.original(item.group.id, item.messageId)) return
    const known = this.#originals.get(item.messageId)
    if (known === undefined) this.#originals.set(item.messageId, item)
    else if (known instanceof Map) known.set(item.group.id, item)
    else this.#originals.set(item.messageId, new Map([known, item].map((each) => [each.group.id, each])))
  }

  remove(item: LiveItem): void {
    if (item.messageId === null) return
    const known = this.#originals.get(item.messageId)
    if (known === item) this.#originals.delete(item.messageId)
    else if (known instanceof Map && known.get(item.group.id) === item) {
      known.delete(item.group.id)
      if (known.size === 0) this.#originals.delete(item.messageId)
    }
  }

  /** Drops a later duplicate. The same item stored twice is not a duplicate of itself: dropped, but not told. */
  drop(
    duplicate: { seq: number; index: number; itemId: string },
    original: LiveItem,
    verdict: PackVerdict | null,
  ): void {
    const { seq, index, itemId } = duplicate
    const originalItemId = original.itemId ?? itemId
    if (verdict) verdict.pending++
    this.#dropping.set(itemId, seq)
    const waiting: (() => void)[] = []
    this.#afterDrops = waiting
    const record = { type: 'drop', position: { seq, index }, itemId, originalItemId } as const
    this.#options.journal.write(record, (_seq, applied) => {
      this.#dropping.delete(itemId)
      if (this.#afterDrops === waiting) this.#afterDrops = null
      if (applied) this.#options.onDropped()
      if (verdict) {
        if (applied && originalItemId !== itemId) verdict.duplicates.push({ index, of: originalItemId })
        this.#settle(verdict)
      }
      for (const tell of waiting) tell()
    })
  }

  /**
   * Drops an item that stands further below already. Nobody is told: the verdict is that on the first one. So the horizon
   * may pass it before the drop is committed.
   */
  refuse(position: Position, itemId: string): void {
    const { journal, onDropped } = this.#options
    journal.write({ type: 'drop', position, itemId, originalItemId: itemId }, (_seq, applied) => {
      if (applied) onDropped()
    })
  }

  /** An item that is over at a replay: when it was dropped, its ingress may not have heard it from the last owner. */
  tellAgain(itemId: string, index: number, verdict: PackVerdict): void {
    const drop = this.#options.state.drops.get(itemId)
    if (drop && drop.originalItemId !== itemId) verdict.duplicates.push({ index, of: drop.originalItemId })
  }

  /** The pack is read. */
  settle(verdict: PackVerdict): void {
    this.#whenNew(() => this.#settle(verdict))
  }

  /**
   * What is new now may be so by a drop on its way. Were that lost, the next owner would take the dropped item for the
   * original, and drop what came after it.
   */
  #whenNew(tell: () => void): void {
    if (this.#afterDrops) this.#afterDrops.push(tell)
    else tell()
  }

  /**
   * One of the things the pack waited for is done; the last one sends the verdict. One of new items alone, as nearly all are,
   * spares the broker where the ingress is in this process. One that names a drop is rare and goes the one way, so that tests can
   * put a fault between a drop and its telling.
   */
  #settle(verdict: PackVerdict): void {
    if (--verdict.pending > 0) return
    const { broker } = this.#options
    const { packId, duplicates } = verdict
    const bytes = encodeVerdict({ packId, duplicates })
    if (duplicates.length > 0) broker.publish(verdict.replySubject, bytes)
    else broker.tell(verdict.replySubject, bytes)
  }

  /**
   * Answers an ingress that got no verdict, or that asks before it charges. `cursor`: next inbox sequence to be read.
   * To be called only while the node holds its lease for certain.
   */
  answer(bytes: Uint8Array, reply: string | undefined, cursor: number): void {
    const ask = decodeAsk(bytes)
    if (!ask || !reply) return
    const tell = (answer: Answer) => this.#options.broker.publish(reply, encodeAnswer(answer))
    const answer = this.#answerTo(ask, cursor)
    // By this answer an item is accepted that is stored nowhere. Only a commit proves that no successor has sent the original.
    if (answer.kind === 'original' && answer.itemId !== null) {
      const proven = () => tell(this.#answerTo(ask, cursor))
      this.#options.journal.prove().then(proven, () => {})
    } else this.#whenNew(() => tell(answer))
  }

  #answerTo(ask: Ask, cursor: number): Answer {
    if (ask.kind === 'original') {
      const original = this.original(ask.groupToken, ask.messageId)
      return { kind: 'original', id: ask.id, itemId: original?.itemId ?? null }
    }
    const fates = ask.items.map(({ index, itemId }) => this.#fateOf(ask.seq, index, itemId, cursor))
    return { kind: 'position', id: ask.id, fates }
  }

  #fateOf(seq: number, index: number, itemId: string, cursor: number): Fate {
    const drop = this.#options.state.drops.get(itemId)
    if (drop && drop.originalItemId !== itemId) return { kind: 'duplicate', of: drop.originalItemId }
    if (this.#options.live.get({ seq, index })) return { kind: 'new' }
    if (seq >= cursor || this.#dropping.has(itemId)) return { kind: 'unknown' }
    return { kind: 'new' }
  }
}
