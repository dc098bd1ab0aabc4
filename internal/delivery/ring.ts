import { Fifo } from '../runtime/fifo.ts'

/** One that takes turns with others. */
export interface Member {
  /** Whether it has something to give turns to. */
  readonly waits: boolean
  /** Kept by the ring: whether it stands in it. */
  lined: boolean
}

/** Members that wait, each once, in the order in which they were served last. */
export class Ring<M extends Member> {
  readonly #members = new Fifo<M>()

  /** Puts `member` to the end when it waits and does not stand here yet. */
  line(member: M): void {
    if (member.lined || !member.waits) return
    member.lined = true
    this.#members.push(member)
  }

  /** What the first member gives that gives anything. It goes to the end, as all do that were passed over. */
  next<T>(give: (member: M) => T | undefined): T | undefined {
    for (let left = this.#members.size; left > 0; left--) {
      const member = this.#members.shift()
      if (!member) return undefined
      member.lined = false
      const given = give(member)
      this.line(member)
      if (given !== undefined) return given
    }
    return undefined
  }
}
