/** The shard's open groups and the buffers they belong to, with their current configuration. */

import type { BufferRecord } from '../domain/model.ts'
import { createGroup } from '../group/state.ts'
import type { Clock } from '../runtime/clock.ts'
import { BufferBook } from './book.ts'
import type { LiveItem, OpenGroup } from './live.ts'
import type { Policies } from './ports.ts'

const LOAD_RETRY_MS = 500
/** Groups that are told before others get the event loop: some milliseconds. */
const TOLD_AT_ONCE = 1_000

export interface GroupsOptions {
  readonly policies: Policies
  readonly clock: Clock
  /** The group's policy is another now. */
  readonly onPolicy: (group: OpenGroup) => void
  readonly onProblem: (what: string, error: unknown) => void
}

export class Groups {
  readonly #options: GroupsOptions
  readonly #open = new Map<string, OpenGroup>()
  readonly #books = new Map<string, BufferBook>()
  readonly #unsubscribe: () => void
  #closed = false
  #paused = false

  constructor(options: GroupsOptions) {
    this.#options = options
    this.#unsubscribe = options.policies.onChange((record) => this.#changed(record))
  }

  /** Nothing is sealed or sent: this node may have been replaced. */
  get paused(): boolean {
    return this.#paused
  }

  /** Every group is told; they differ from what they do now only in being held. */
  pause(paused: boolean): void {
    if (this.#paused === paused) return
    this.#paused = paused
    this.#tell([...this.#open.values()])
  }

  /** The replay is over: whoever was held for it goes on, but for those whose batches are still to be restored. */
  release(): void {
    this.#tell([...this.#open.values()].filter((group) => group.restoring === 0))
  }

  get size(): number {
    return this.#open.size
  }

  books(): Iterable<BufferBook> {
    return this.#books.values()
  }

  get(id: string): OpenGroup | undefined {
    return this.#open.get(id)
  }

  /** The group; a new one is opened as held when `held`, and `onPolicy` follows a change of its buffer. */
  open(id: string, bufferUid: string, held: boolean): OpenGroup {
    const known = this.#open.get(id)
    if (known) return known
    const book = this.#book(bufferUid)
    const now = this.#options.clock.now()
    const group: OpenGroup = {
      id,
      book,
      machine: createGroup(held || this.#paused ? book.heldPolicy : book.policy, now),
      wakeAt: Number.POSITIVE_INFINITY,
      provisional: book.record === undefined,
      restoring: 0,
    }
    this.#open.set(id, group)
    book.groups++
    return group
  }

  /**
   * Once the record of its buffer is known, a provisional group begins anew, held: the items, in order, are to
   * be given to it again, so that its segments are those that the configuration asks for. Otherwise none.
   */
  beginAnew(group: OpenGroup): LiveItem[] {
    if (!group.provisional || !group.book.record) return []
    group.provisional = false
    if (group.machine.batches) return []
    const items = group.machine.backlog.drain()
    group.machine = createGroup(group.book.heldPolicy, this.#options.clock.now())
    group.wakeAt = Number.POSITIVE_INFINITY
    return items
  }

  retire(group: OpenGroup): void {
    this.#open.delete(group.id)
    group.wakeAt = Number.POSITIVE_INFINITY
    group.book.groups--
    if (group.book.groups === 0) this.#books.delete(group.book.uid)
  }

  close(): void {
    this.#closed = true
    this.#unsubscribe()
  }

  #book(uid: string): BufferBook {
    const known = this.#books.get(uid)
    if (known) return known
    const book = new BufferBook(uid)
    this.#books.set(uid, book)
    const record = this.#options.policies.peek(uid)
    if (record) book.update(record)
    else void this.#load(book)
    return book
  }

  /** Until the record is known the buffer's groups are held. */
  async #load(book: BufferBook): Promise<void> {
    while (!this.#closed && !book.record && this.#books.get(book.uid) === book) {
      try {
        const record = await this.#options.policies.load(book.uid)
        if (record) return this.#changed(record)
        this.#options.onProblem(
          'items of a buffer that does not exist are held',
          new Error(`buffer ${book.uid}`),
        )
      } catch (error) {
        this.#options.onProblem('the configuration of a buffer cannot be read', error)
      }
      await new Promise<void>((resume) => this.#options.clock.after(LOAD_RETRY_MS, resume))
    }
  }

  #changed(record: BufferRecord): void {
    const book = this.#books.get(record.uid)
    if (!book?.update(record)) return
    // Changes are rare: no group pays for an index of its buffer's groups.
    this.#tell([...this.#open.values()].filter((group) => group.book === book))
  }

  /** In slices: hundreds of thousands at once would keep the node's other shards and its lease waiting. */
  #tell(groups: readonly OpenGroup[], from = 0): void {
    const to = from + TOLD_AT_ONCE
    for (const group of groups.slice(from, to)) {
      if (this.#closed) return
      if (this.#open.get(group.id) === group) this.#options.onPolicy(group)
    }
    if (to < groups.length) this.#options.clock.after(0, () => this.#tell(groups, to))
  }
}
