/**
 * How much of a journal's `max_bytes` its owner may use, and for what (docs/architecture/protocol.md, "Room in a journal").
 * Pure: it is told what the broker says, and counts what is appended since.
 *
 * Invariant: while no snapshot is being written and all purges are done that the last one allows, the next one fits. Only
 * snapshots let a journal be cut, so one without room for it would be full for ever.
 */
import type { LogState } from '../broker.ts'
import type { JournalRecord } from './records.ts'

/** Of `max_bytes`, up to which each kind of record is taken; the next snapshot counts as if it stood there already. */
const SHARE = { work: 0.85, results: 0.95 }
/** What the broker stores for a commit beside its records: header, subject and ids, bytes at most. */
const COMMIT_BYTES = 512
/** A kept item in a snapshot: its position, commit and ordinal, bytes at most. */
const KEPT_BYTES = 16

/** What a snapshot holds beside a record that it keeps: its version or time, its attempt, its position once more; bytes at most. */
const BESIDE_BYTES = 20
/** What a snapshot holds about as long as the record, and at most `BESIDE_BYTES` longer. */
const GROWING: ReadonlySet<JournalRecord['type'] | undefined> = new Set([
  'seal',
  'discard',
  'drop',
  'seen',
] as const)

/**
 * `work` makes the state larger. `results` end work, say how far it is, or drop a
 * duplicate: an original must not be over before its duplicate is dropped. `last`: means that all before it is committed.
 * `upkeep` lets the journal be cut, and always has room.
 */
export type RecordKind = 'work' | 'results' | 'last' | 'upkeep'

export function kindOf(record: JournalRecord): RecordKind {
  switch (record.type) {
    case 'seal':
    case 'discard':
      return 'work'
    case 'keep':
    case 'horizon':
    case 'seen':
    case 'snapshot-begin':
    case 'snapshot-part':
    case 'snapshot-end':
      return 'upkeep'
    case 'release':
      return 'last'
    default:
      return 'results'
  }
}

function grownBy(record: JournalRecord | null, bytes: number): number {
  if (record?.type === 'keep') return record.items.length * KEPT_BYTES
  return GROWING.has(record?.type) ? bytes + BESIDE_BYTES : 0
}

export class JournalRoom {
  /** Not above 0: there is no limit, or it is not known. */
  #maxBytes = 0
  /** At the broker, at most, beside what is taken and not answered yet. */
  #bytes = 0
  #taken = 0
  #answered = 0
  /** `#taken` at the last look. */
  #looked = 0
  /** Of the state in a snapshot, at most. */
  #state = 0
  /** Drops that `#state` counts. */
  #drops = 0
  /** What `#state` and `#drops` grew by since the state was frozen. */
  #since = { bytes: 0, drops: 0 }
  /** Of the snapshot that is being written: what is not taken yet. */
  #unwritten = 0

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

  /** Drops that count as a part of the state. */
  get drops(): number {
    return this.#drops
  }

  /** The state of now is measured; meanwhile it counts as before. */
  freeze(): void {
    this.#since = { bytes: 0, drops: 0 }
  }

  /** A snapshot of the frozen state has so many bytes; so many are to come of the one that is being written. `drops`: in that state. */
  stateIs(bytes: number, toCome: number, drops: number): void {
    this.#state = bytes + this.#since.bytes
    this.#drops = drops + this.#since.drops
    this.#unwritten = toCome
  }

  /** The record is on its way into a commit. */
  take(record: JournalRecord | null, bytes: number): void {
    this.#taken += bytes
    if (record?.type === 'snapshot-part') this.#unwritten = Math.max(0, this.#unwritten - bytes)
    this.grow(record, bytes)
  }

  /** The state will hold the record. */
  grow(record: JournalRecord | null, bytes: number): void {
    const drops = record?.type === 'drop' ? 1 : 0
    this.#drops += drops
    this.#since.drops += drops
    const grown = grownBy(record, bytes)
    this.#state += grown
    this.#since.bytes += grown
  }

  /** A commit of records with so many bytes is on its way, … */
  sent(): void {
    this.#taken += COMMIT_BYTES
  }

  /** … and is stored. */
  stored(bytes: number): void {
    this.#answered += bytes + COMMIT_BYTES
  }

  has(kind: RecordKind): boolean {
    if (this.#maxBytes <= 0 || kind === 'upkeep') return true
    return this.used < this.#maxBytes * (kind === 'work' ? SHARE.work : SHARE.results)
  }

  /** With the next snapshot, and what is to come of the one that is being written; bytes at most. */
  get used(): number {
    return this.#bytes + this.#taken + this.#state + this.#unwritten
  }

  /** Half of what was left for work at the last look is taken, or nothing is left: the broker may know of more. */
  get isUncertain(): boolean {
    if (this.#maxBytes <= 0) return false
    const left = this.#maxBytes * SHARE.work - this.used
    return left < this.#taken - this.#looked || left <= 0
  }
}
