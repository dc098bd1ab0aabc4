/**
 * The state of a shard as its archive and its journal tell it (docs/architecture/protocol.md, "The fold"): the newest snapshot, and the
 * commits behind it.
 *
 * Invariant: a reading without a fault is the fold of every commit that was ever stored up to its end.
 */
import type { Clock } from '../../runtime/clock.ts'
import { inTurns } from '../../runtime/in-turns.ts'
import type { SnapshotArchive } from '../archive/snapshot-archive.ts'
import type { StoredSnapshot } from '../archive/snapshot-subjects.ts'
import type { Log, LogMessage } from '../broker.ts'
import { KeptIndex } from '../held/kept-index.ts'
import { decodeCommit } from '../journal/codec.ts'
import { type CommitName, commitName, isSameCommit, NO_COMMIT } from '../journal/commit-name.ts'
import { applyCommit } from '../journal/fold.ts'
import type { SettledRecord } from '../journal/records.ts'
import { decodeSnapshot } from '../journal/snapshot.ts'
import { emptyState, type FoldState } from '../journal/state.ts'

/** A snapshot in the archive, all of which was read. */
export interface KnownSnapshot {
  readonly name: CommitName
  readonly bytes: number
}

export interface JournalReading {
  readonly state: FoldState
  /** What the reading began with; null: with the first commit that there ever was. */
  readonly snapshot: KnownSnapshot | null
  /** Bytes of the commits behind the snapshot. */
  readonly bytesBehind: number
  /** Places of the kept items that were read. */
  readonly kept: KeptIndex
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

/** Everything up to and including the commit at `to`. Rejects when the broker does not answer. */
export async function readJournal(
  { journal, archive, clock }: ShardLogs,
  to: number,
): Promise<JournalReading> {
  const stored = await archive.list()
  const { firstSeq, origin } = await journal.state()
  const { candidates, denied } = await weigh(stored, journal, { firstSeq, to })
  const start = await newestWhole(archive, candidates)
  const state = start ? await inTurns(clock, decodeSnapshot(start.data)) : emptyState()
  const snapshot = start && { name: start.name, bytes: start.data.length }
  const reading = new Reading(clock, state, snapshot?.name.seq ?? null, origin ?? firstSeq)
  for await (const message of journal.range(firstSeq, to)) await reading.take(message)
  return { ...reading.end(to), state, snapshot, origin, denied }
}

/** Which snapshots a reading may begin with, newest first. Whoever wrote one saw its commit answered, also when it has no end. */
async function weigh(
  stored: readonly StoredSnapshot[],
  journal: Log,
  { firstSeq, to }: { firstSeq: number; to: number },
): Promise<{ candidates: CommitName[]; denied: string | null }> {
  const candidates: CommitName[] = []
  let denied: string | null = null
  for (const { name, hasEnd } of stored) {
    if (name.seq < firstSeq) break
    const message = name.seq <= to ? await journal.get(name.seq) : undefined
    if (message && isSameCommit(name, commitName(name.seq, message.data))) {
      if (hasEnd) candidates.push(name)
    } else denied ??= `a snapshot names the commit ${name.seq}, and the journal up to ${to} does not have it`
  }
  return { candidates, denied }
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
  readonly #kept: KeptIndex
  readonly #settled: { commit: CommitName; record: SettledRecord }[] = []
  #bytesBehind = 0
  #fault: string | null = null
  /** The next commit that must not be missing. */
  #next: number
  #last: Pick<LogMessage, 'seq' | 'data'> | null = null

  /** `snapshot`: the commit after which `state` stands; null: it is that before the first one, `origin`. */
  constructor(clock: Clock, state: FoldState, snapshot: number | null, origin: number) {
    this.#kept = new KeptIndex(clock)
    this.#state = state
    this.#snapshot = snapshot
    this.#next = snapshot ?? origin
  }

  async take({ seq, data }: LogMessage): Promise<void> {
    this.#last = { seq, data }
    if (this.#fault !== null) return
    // Whoever looks again finds another fault where another purge, or another server, is to blame.
    if (seq > this.#next) this.#fault = `the journal misses commits from ${this.#next} to ${seq - 1}`
    if (seq === this.#next) this.#next++
    const commit = decodeCommit(data)
    const isBehind = this.#snapshot === null || seq > this.#snapshot
    const applied = isBehind ? applyCommit(this.#state, { seq, commit }) : null
    if (isBehind) this.#bytesBehind += data.length
    await this.#kept.take({ seq, commit }, data, this.#state)
    const settled = commit.records.filter(
      (record, index): record is SettledRecord =>
        (record.type === 'done' || record.type === 'dead') && applied?.[index] !== false,
    )
    const name = settled.length > 0 ? commitName(seq, data) : NO_COMMIT
    for (const record of settled) this.#settled.push({ commit: name, record })
  }

  end(to: number): Pick<JournalReading, 'kept' | 'settled' | 'last' | 'bytesBehind' | 'fault'> {
    if (this.#next <= to)
      this.#fault ??= `the journal ends at ${this.#next - 1}, and a commit at ${to} was stored`
    return {
      kept: this.#kept,
      settled: this.#settled,
      last: this.#last && commitName(this.#last.seq, this.#last.data),
      bytesBehind: this.#bytesBehind,
      fault: this.#fault,
    }
  }
}
