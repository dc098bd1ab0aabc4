import type { BufferRecord } from '../../internal/domain/model.ts'
import {
  type Holder,
  type Inbox,
  InboxUnavailableError,
  type NewItem,
  type Shares,
  type Stored,
} from '../../internal/ingest/ports.ts'

/**
 * An inbox of this process, for tests of what stands before it: it keeps items, finds duplicates among them, and
 * can be told to fail or to know its verdicts late.
 */
export class MemoryInbox implements Inbox, Shares {
  readonly items: NewItem[] = []
  /** What the next appends do: store, refuse, break, or answer before the verdict is known. */
  mode: 'store' | 'unavailable' | 'broken' | 'late' = 'store'
  /** Appends that wait for the end of `hold`. */
  waiting = 0
  #gate: Promise<void> | undefined
  /** Group keys of whose shard somebody holds the whole share. */
  readonly fullFor = new Map<string, Holder>()
  /** Whether the owner answers questions about duplicates. */
  ownerAnswers = true
  /** Verdicts of items appended in mode `late`, for the test to give. */
  readonly verdicts: Array<(outcome: 'new' | 'duplicate' | 'unknown') => void> = []

  async append(item: NewItem): Promise<Stored> {
    await this.#pass()
    if (this.mode === 'unavailable') throw new InboxUnavailableError('no broker')
    if (this.mode === 'broken') throw new TypeError('a bug')
    const duplicate = item.explicit
      ? this.#duplicate(item.bufferUid, item.groupKey, item.messageId)
      : undefined
    if (duplicate) return { duplicateOf: duplicate.itemId }
    this.items.push(item)
    if (this.mode === 'store') return { duplicateOf: null }
    return { duplicateOf: null, late: new Promise((resolve) => this.verdicts.push(resolve)) }
  }

  /** Lets appends wait until what it returns is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#gate = promise
    return () => {
      this.#gate = undefined
      resolve()
    }
  }

  async #pass(): Promise<void> {
    if (this.#gate === undefined) return
    this.waiting++
    await this.#gate
    this.waiting--
  }

  over(_record: BufferRecord, groupKey: string): Holder | null {
    return this.fullFor.get(groupKey) ?? null
  }

  async findOriginal(
    bufferUid: string,
    groupKey: string,
    messageId: string,
  ): Promise<string | null | undefined> {
    if (!this.ownerAnswers) return undefined
    return this.#duplicate(bufferUid, groupKey, messageId)?.itemId ?? null
  }

  #duplicate(bufferUid: string, groupKey: string, messageId: string): NewItem | undefined {
    return this.items.find(
      (item) =>
        item.explicit &&
        item.bufferUid === bufferUid &&
        item.groupKey === groupKey &&
        item.messageId === messageId,
    )
  }
}
