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
   * `at`: when the seal was committed. `dueAt`: when the trigger held and nothing held the group back. The owner decides
   * between the two, and the delay counts from that moment. So a commit is later than the last due time by the delay.
   */
  flushed(
    owner: Owner,
    groupId: string,
    { at, dueAt, delayMs }: Record<'at' | 'dueAt' | 'delayMs', number>,
  ): void {
    const due = this.#due.get(owner) ?? new Map<string, number>()
    this.#due.set(owner, due)
    const last = due.get(groupId)
    if (last !== undefined && at < last + delayMs)
      this.#wrong.push(
        `${groupId} was flushed ${at - last} ms after its last flush, ${delayMs} are asked for`,
      )
    due.set(groupId, dueAt)
  }
}
