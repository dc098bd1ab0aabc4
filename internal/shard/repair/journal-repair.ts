/** Writes a journal anew above every sequence that was ever used (docs/architecture/repair.md, "The journal"). */

import type { Clock } from '../../runtime/clock.ts'
import { sleep } from '../../runtime/sleep.ts'
import type { SnapshotArchive } from '../archive/snapshot-archive.ts'
import type { Log } from '../broker.ts'
import type { JournalReading } from '../claim/journal-reading.ts'
import { appendBehind } from '../journal/append-behind.ts'
import { encodeCommit, encodeRecord } from '../journal/codec.ts'
import { type CommitName, commitName } from '../journal/commit-name.ts'
import { raiseHorizon } from '../journal/fold.ts'
import { encodeSnapshot, freezeState } from '../journal/snapshot.ts'
import { type JournalFindings, readWhole } from './examination.ts'
import { type CompleteCopy, completeCopy, copiedState, copyJournal, movedPlaces } from './journal-copy.ts'
import type { JournalCopies } from './ports.ts'

const COPY_LOST = 'the broker lost the copy of the journal: run the repair again'

/** What the journal held is neither in it nor in a copy: only a backup helps. */
export class JournalGoneError extends Error {
  override readonly name = 'JournalGoneError'
}

/** Somebody wrote into the logs while they were repaired: run it again once no node runs the shard. */
export class DisturbedRepairError extends Error {
  override readonly name = 'DisturbedRepairError'
}

export interface JournalRepairOptions {
  readonly journal: Log
  readonly archive: SnapshotArchive
  readonly shard: number
  readonly copies: JournalCopies
  readonly clock: Clock
  /** The broker has on disk what it acknowledged so long ago, ms; 0: it always has. */
  readonly syncLagMs: number
  /** Nodes may run the shard from now on, while the new journal comes to the disk. */
  readonly onWhole: () => void
  /** UUID of this repair. */
  readonly boot: string
  readonly findings: JournalFindings
  /** First message of an inbox of which what stood below is lost; null: nothing is. */
  readonly lostBelow: number | null
}

/**
 * Resolves when the journal is whole again. Rejects with JournalGoneError or DisturbedRepairError. What is replaced is
 * removed only when its replacement is on the broker's disk: a power cut could leave neither. So the snapshot of the new journal goes
 * first into the archive; from then on no claim takes the old journal for whole.
 */
export async function repairJournal(options: JournalRepairOptions): Promise<void> {
  const { shard, copies, clock, syncLagMs, boot } = options
  const copy = await copyOf(options)
  const first = await firstOf(options)
  const anew = { copy, first, at: clock.now() }
  const name = await lastName(options, anew)
  const state = await copiedState(copy)
  const kept = movedPlaces(state.kept, first + 1)
  const snapshot = encodeSnapshot(freezeState({ ...state, epoch: first, boot, kept }))
  await options.archive.write(name, snapshot, () => false)
  await untilSynced(options, copy)
  if ((await options.archive.read(name)) === undefined)
    throw new DisturbedRepairError('the broker lost the snapshot of the new journal: run the repair again')
  await copies.emptyJournal(shard, first)
  await writeAnew(options, anew)
  options.onWhole()
  if (syncLagMs > 0) {
    await sleep(clock, syncLagMs)
    await checkAnew(options, first, first + copy.commits + 1)
  }
  await copies.remove(shard)
}

/** Above whatever was ever used: the clock of this process may be behind. */
async function firstOf({ journal, archive, clock, findings }: JournalRepairOptions): Promise<number> {
  const { lastSeq } = await journal.state()
  const { claim, counted } = findings.known
  const named = (await archive.list()).map(({ name }) => name.seq)
  return Math.max(clock.now() * 1_000, 1 + Math.max(lastSeq, claim.seq, counted.seq, ...named))
}

/** What the journal is written from. */
async function copyOf(options: JournalRepairOptions): Promise<CompleteCopy> {
  const { shard, copies, findings } = options
  const complete = await completeCopy(copies, shard)
  if (findings.truncatedWithoutSnapshot) {
    if (complete !== undefined) return complete
    throw new JournalGoneError(
      `shard ${shard}: the beginning of the journal is gone and there is no copy of it: restore NATS from a backup`,
    )
  }
  const read = await readWhole(options)
  // Emptied by an earlier run, and come back from a power cut as if it had just been made.
  if (complete !== undefined && (await copiedState(complete)).epoch > read.state.epoch) return complete
  return newCopy(options, read)
}

/** Rejects with DisturbedRepairError when the copy, or the end of the journal, changed meanwhile. */
async function untilSynced(options: JournalRepairOptions, { length }: CompleteCopy): Promise<void> {
  const { journal, shard, copies, clock, syncLagMs } = options
  if (syncLagMs === 0) return
  const before = (await journal.state()).lastSeq
  await sleep(clock, syncLagMs)
  const copy = await completeCopy(copies, shard)
  if (copy?.length !== length) throw new DisturbedRepairError(COPY_LOST)
  // Rejects when a message cannot be read.
  for await (const _ of copy.read(0, length));
  if ((await journal.state()).lastSeq !== before)
    throw new DisturbedRepairError('somebody else writes to the journal')
}

/** A power cut while the repair waited for the disk may have taken the new journal: then its copy stays. */
async function checkAnew(
  { journal, shard }: JournalRepairOptions,
  first: number,
  last: number,
): Promise<void> {
  const { firstSeq, lastSeq } = await journal.state()
  const isThere = async (seq: number) =>
    // A node that runs the shard by now purges behind a snapshot of its own.
    seq < firstSeq || (await journal.get(seq))?.msgId === idOf(first, seq - first)
  const isEmpty = lastSeq < firstSeq
  if (isEmpty || lastSeq < last || !(await isThere(first)) || !(await isThere(last)))
    throw new DisturbedRepairError(`shard ${shard}: the broker lost the new journal: run the repair again`)
}

async function newCopy(
  options: JournalRepairOptions,
  { state, settled }: JournalReading,
): Promise<CompleteCopy> {
  const { journal, shard, copies, findings, lostBelow } = options
  if (lostBelow !== null) raiseHorizon(state, lostBelow)
  const uncounted = settled
    .filter(({ commit }) => commit.seq > findings.known.counted.seq)
    .map(({ record }) => record)
  await copies.save(shard, copyJournal(journal, state, uncounted))
  const copy = await completeCopy(copies, shard)
  if (copy === undefined) throw new DisturbedRepairError(COPY_LOST)
  return copy
}

interface NewJournal {
  readonly copy: CompleteCopy
  /** Its first sequence. */
  readonly first: number
  /** Of its commits, Unix ms. */
  readonly at: number
}

/** Commits of the new journal from number `from` on: a claim, what the copy holds, a release. */
async function* commitsOf(
  { boot }: JournalRepairOptions,
  { copy, first, at }: NewJournal,
  from: number,
): AsyncGenerator<Buffer> {
  const encode = (epoch: number, records: Uint8Array) =>
    encodeCommit({ boot, epoch, at, highWater: null }, [records])
  if (from === 0) yield encode(0, encodeRecord({ type: 'epoch' }))
  for await (const records of copy.read(Math.max(0, from - 1), copy.commits)) yield encode(first, records)
  yield encode(first, encodeRecord({ type: 'release', batches: [] }))
}

/** Of the last commit before the release. */
async function lastName(options: JournalRepairOptions, anew: NewJournal): Promise<CommitName> {
  const { commits } = anew.copy
  const [last] = await Array.fromAsync(commitsOf(options, anew, commits))
  return commitName(anew.first + commits, last!)
}

async function writeAnew(options: JournalRepairOptions, anew: NewJournal): Promise<void> {
  const { journal, clock } = options
  let number = 0
  for await (const data of commitsOf(options, anew, 0)) {
    const place = { msgId: idOf(anew.first, number), seq: anew.first + number }
    if (!(await appendBehind(journal, clock, data, place)))
      throw new DisturbedRepairError('somebody else writes to the journal')
    number++
  }
}

function idOf(first: number, number: number): string {
  return `${first}:${number}`
}
