/**
 * How much of a journal's `max_bytes` its owner may use, and for what (docs/architecture/protocol.md, "Room in a journal").
 * Pure: it is told what the broker says, and counts what is appended since.
 *
 * Invariant: what lets the journal be cut has room. A snapshot takes none; carrying the oldest kept items forward has a share that
 * nothing else takes, and the cut behind it gives as much back; claims and proofs have the rest.
 */
import type { LogState } from '../broker.ts'

/** Of `max_bytes`, up to which commits are taken; beyond, only kept items are carried forward, and beyond that only proofs pass. */
const SHARE = { commits: 0.8, carrying: 0.9 }
export type Share = keyof typeof SHARE

/** What the broker stores for a commit beside its records: header, subject and ids, bytes at most. */
const COMMIT_BYTES = 512

export class JournalRoom {
  /** Not above 0: there is no limit, or it is not known. */
  #maxBytes = 0
  /** At the broker, at most, beside what is taken and not answered yet. */
  #bytes = 0
  #taken = 0
  #answered = 0
  /** `#taken` at the last look. */
  #looked = 0

  /** Bytes that were taken and answered; to be asked before the broker is. */
  get answered(): number {
    return this.#answered
  }

  /** Of the broker, which was asked when so many bytes were answered. */
  told({ bytes, maxBytes }: Pick<LogState, 'bytes' | 'maxBytes'>, answered: number): void {
    this.#maxBytes = maxBytes
    this.#bytes = bytes - answered
    this.#looked = this.#taken
  }

  /** A record of so many bytes is on its way into a commit, … */
  take(bytes: number): void {
    this.#taken += bytes
  }

  /** … a commit of such records is on its way, … */
  sent(): void {
    this.#taken += COMMIT_BYTES
  }

  /** … and is stored. */
  stored(bytes: number): void {
    this.#answered += bytes + COMMIT_BYTES
  }

  /** Bytes that are left of a share; not above 0: none. Infinity: there is no limit. */
  left(share: Share): number {
    return this.#maxBytes > 0 ? this.#maxBytes * SHARE[share] - this.used : Number.POSITIVE_INFINITY
  }

  /** Bytes that are taken, at most. */
  get used(): number {
    return this.#bytes + this.#taken
  }

  /** Half of what was left for commits at the last look is taken, or nothing is left: the broker may know of more. */
  get isUncertain(): boolean {
    const left = this.left('commits')
    return left < this.#taken - this.#looked || left <= 0
  }
}
