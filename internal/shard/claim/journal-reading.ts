/**
 * The state of a shard as its archive and its journal tell it (docs/architecture/protocol.md, "The fold"): the newest snapshot, and the
 * commits behind it.
 *
 * Invariant: a reading without a fault is the fold of every commit that was ever stored up to its end.
 */
import type { Clock } from '../../runtime/clock.ts'
import { inTurns, TurnBudget } from '../../runtime/in-turns.ts'
import type { SnapshotArchive } from '../archive/snapshot-archive.ts'
import type { Log, LogMessage } from '../broker.ts'
import { Notes } from '../held/noted-items.ts'
import { decodeCommit } from '../journal/codec.ts'
import { type CommitName, commitName, isSameCommit, NO_COMMIT } from '../journal/commit-name.ts'
import { applyCommit } from '../journal/fold.ts'
import { type SettledRecord, weightOf } from '../journal/records.ts'
import { decodeSnapshot } from '../journal/snapshot.ts'
import { emptyState, type FoldState } from '../journal/state.ts'

/** That the fold goes through in one turn of the event loop, some ms. One that is noted counts twice. */
const POSITIONS_A_TURN = 5_000

/** A snapshot in the archive, all of which was read. */
export interface KnownSnapshot {
  readonly name: CommitName
  readonly bytes: number
}

export interface ReadSnapshot extends KnownSnapshot {
  /** The last claim at or below it. */
  readonly claim: number
}

export interface JournalReading {
  /** With notes of the kept items that were read: see `listKept`. */
  readonly state: FoldState
  /** What the reading began with; null: with the first commit that there ever was. */
  readonly snapshot: ReadSnapshot | null
  /** Bytes of the commits behind the snapshot. */
  readonly bytesBehind: number
  /** Settled batches found in the journal, in order. Below the snapshot nobody knows which of them were void. */
  readonly settled: readonly { commit: CommitName; record: SettledRecord }[]
  /** The last commit that was read, also behind a fault; null: none was. */
  readonly last: CommitName | null
  /** The sequence that the journal began with when its stream was made; undefined: not known. */
  readonly origin: number | undefined
  /** What was missing, with its sequences, so that `state` is not to be trusted; null: nothing was. */
  readonly fault: string | null
  /** A snapshot names a commit that the journal does not have, with its sequence; null: none does. */
  readonly denied: string | null
}

export interface ShardLogs {
  readonly journal: Log
  readonly archive: SnapshotArchive
  readonly clock: Clock
}

/**
 * Everything up to and including the commit at `to`. Whoever wrote a snapshot saw its commit answered, also when it has no end. Rejects
 * when the broker does not answer.
 */
export async function readJournal(
  { journal, archive, clock }: ShardLogs,
  to: number,
): Promise<JournalReading> {
  const stored = await archive.list()
  const { firstSeq, origin } = await journal.state()
  const above = stored.filter(({ name }) => name.seq >= firstSeq)
  const named = above.map(({ name }) => name)
  const candidates = above.filter(({ name, hasEnd }) => hasEnd && name.seq <= to).map(({ name }) => name)
  for (;;) {
    const start = await newestWhole(archive, candidates)
    const state = start ? await inTurns(clock, decodeSnapshot(start.data)) : emptyState()
    const snapshot = start && { name: start.name, bytes: start.data.length, claim: state.epoch }
    const reading = new Reading(clock, state, named, start?.name.seq ?? null, origin ?? firstSeq)
    for await (const message of journal.range(firstSeq, to)) await reading.take(message)
    if (!start || !reading.others.has(start.name)) return { ...reading.end(to), state, snapshot, origin }
    // Of another journal: a repair goes on with the one before it.
    candidates.splice(0, candidates.indexOf(start.name) + 1)
  }
}

async function newestWhole(
  archive: SnapshotArchive,
  candidates: readonly CommitName[],
): Promise<{ name: CommitName; data: Buffer } | null> {
  for (const name of candidates) {
    const data = await archive.read(name)
    if (data !== undefined) return { name, data }
  }
  return null
}

class Reading {
  readonly #state: FoldState
  /** What the state held at first; null: nothing. */
  readonly #snapshot: number | null
  readonly #notes = new Notes()
  readonly #turns: TurnBudget
  readonly #named: readonly CommitName[]
  /** Those of another commit than the journal has. */
  readonly others = new Set<CommitName>()
  readonly #settled: { commit: CommitName; record: SettledRecord }[] = []
  #bytesBehind = 0
  #fault: string | null = null
  /** The next commit that must not be missing. */
  #next: number
  #last: Pick<LogMessage, 'seq' | 'data'> | null = null

  /**
   * `named`: of snapshots, newest first. `snapshot`: the commit after which `state` stands; null: it is that before the first one,
   * `origin`.
   */
  constructor(
    clock: Clock,
    state: FoldState,
    named: readonly CommitName[],
    snapshot: number | null,
    origin: number,
  ) {
    this.#turns = new TurnBudget(clock, POSITIONS_A_TURN)
    this.#state = state
    this.#named = named
    this.#snapshot = snapshot
    this.#next = snapshot ?? origin
  }

  async take({ seq, data }: LogMessage): Promise<void> {
    this.#last = { seq, data }
    for (const name of this.#named)
      if (name.seq === seq && !isSameCommit(name, commitName(seq, data))) this.others.add(name)
    if (this.#fault !== null) return
    // Whoever looks again finds another fault where another purge, or another server, is to blame.
    if (seq > this.#next) this.#fault = `the journal misses commits from ${this.#next} to ${seq - 1}`
    if (seq === this.#next) this.#next++
    const commit = decodeCommit(data)
    const isBehind = this.#snapshot === null || seq > this.#snapshot
    const applied = isBehind ? applyCommit(this.#state, { seq, commit }) : null
    if (isBehind) this.#bytesBehind += data.length
    const noted = this.#notes.take({ seq, commit }, data, this.#state)
    const settled = commit.records.filter(
      (record, index): record is SettledRecord =>
        (record.type === 'done' || record.type === 'dead') && applied?.[index] !== false,
    )
    const name = settled.length > 0 ? commitName(seq, data) : NO_COMMIT
    for (const record of settled) this.#settled.push({ commit: name, record })
    const weight = commit.records.reduce((sum, record) => sum + weightOf(record), noted + 1)
    if (this.#turns.spend(weight)) await this.#turns.next()
  }

  end(to: number): Omit<JournalReading, 'state' | 'snapshot' | 'origin'> {
    const denied = this.#named.find((name) => name.seq > to || this.others.has(name))
    if (this.#next <= to)
      this.#fault ??= `the journal ends at ${this.#next - 1}, and a commit at ${to} was stored`
    return {
      settled: this.#settled,
      last: this.#last && commitName(this.#last.seq, this.#last.data),
      bytesBehind: this.#bytesBehind,
      fault: this.#fault,
      denied: denied
        ? `a snapshot names the commit ${denied.seq}, and the journal up to ${to} does not have it`
        : null,
    }
  }
}
