/** A buffer keeps two flushes of a group apart, also of one that held nothing in between (docs/architecture/protocol.md, "Groups"). */
import type { Owner } from '../owner.ts'

export class FlushJudge {
  readonly #wrong: string[]
  /** When the last flush of each group was due, by owner. */
  readonly #due = new Map<Owner, Map<string, number>>()

  constructor(wrong: string[]) {
    this.#wrong = wrong
  }

  /**
   * `dueAt`: when the trigger held and nothing held the group back. It is never after the flush, and the delay counts from
   * the flush. So two of them are apart by the delay at least, however long a commit takes.
   */
  flushed(owner: Owner, groupId: string, dueAt: number, delayMs: number): void {
    const due = this.#due.get(owner) ?? new Map<string, number>()
    this.#due.set(owner, due)
    const last = due.get(groupId)
    if (last !== undefined && dueAt < last + delayMs)
      this.#wrong.push(
        `${groupId} was flushed ${dueAt - last} ms after its last flush, ${delayMs} are asked for`,
      )
    due.set(groupId, dueAt)
  }
}
