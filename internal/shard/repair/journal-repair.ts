/** Writes a journal anew above every sequence that was ever used (docs/architecture/repair.md, "The journal"). */

import { sleep } from '../../runtime/sleep.ts'
import { SnapshotArchive } from '../archive/snapshot-archive.ts'
import type { Log } from '../broker.ts'
import type { JournalReading } from '../claim/journal-reading.ts'
import { appendBehind } from '../journal/append-behind.ts'
import { encodeCommit, encodeRecord } from '../journal/codec.ts'
import { type CommitName, commitName } from '../journal/commit-name.ts'
import { raiseHorizon } from '../journal/fold.ts'
import { encodeSnapshot, freezeState } from '../journal/snapshot.ts'
import { type Findings, readWhole } from './examination.ts'
import { type CompleteCopy, completeCopy, copiedState, copyJournal, movedPlaces } from './journal-copy.ts'
import type { RepairOptions } from './ports.ts'

const COPY_LOST = 'the broker lost the copy of the journal: run the repair again'

/** What the journal held is neither in it nor in a copy: only a backup helps. */
export class JournalGoneError extends Error {
  override readonly name = 'JournalGoneError'
}

/** Somebody wrote into the logs while they were repaired: run it again once no node runs the shard. */
export class DisturbedRepairError extends Error {
  override readonly name = 'DisturbedRepairError'
}

interface Repairing extends RepairOptions {
  readonly journal: Log
  readonly archive: SnapshotArchive
  readonly findings: Findings
}

/**
 * Resolves when the journal is whole again. Rejects with JournalGoneError or DisturbedRepairError. What is replaced is
 * removed only when its replacement is on the broker's disk: a power cut could leave neither. So the snapshot of the new journal goes
 * first into the archive; from then on no claim takes the old journal for whole.
 */
export async function repairJournal(given: RepairOptions, findings: Findings): Promise<void> {
  const { broker, shard, copies, clock, syncLagMs, boot } = given
  const archive = new SnapshotArchive({ archive: broker.archive(shard), clock, writer: boot })
  const options = { ...given, journal: broker.journal(shard), archive, findings }
  const copy = await copyOf(options)
  const first = await firstOf(options)
  const anew = { copy, first, at: clock.now() }
  const name = await lastName(options, anew)
  const state = await copiedState(copy)
  const kept = movedPlaces(state.kept, first + 1)
  const snapshot = encodeSnapshot(freezeState({ ...state, epoch: first, boot, kept }))
  await archive.write(name, snapshot, () => false)
  await untilSynced(options, copy)
  if ((await archive.read(name)) === undefined)
    throw new DisturbedRepairError('the broker lost the snapshot of the new journal: run the repair again')
  await copies.emptyJournal(shard, first)
  await writeAnew(options, anew)
  given.onWhole()
  if (syncLagMs > 0) {
    await sleep(clock, syncLagMs)
    await checkAnew(options, first, first + copy.commits + 1)
  }
  await copies.remove(shard)
}

/** Above whatever was ever used: the clock of this process may be behind. */
async function firstOf({ journal, archive, clock, findings }: Repairing): Promise<number> {
  const { lastSeq } = await journal.state()
  const { claim, counted } = findings.journal.known
  const named = (await archive.list()).map(({ name }) => name.seq)
  return Math.max(clock.now() * 1_000, 1 + Math.max(lastSeq, claim.seq, counted.seq, ...named))
}

/** What the journal is written from. */
async function copyOf(options: Repairing): Promise<CompleteCopy> {
  const { shard, copies, findings } = options
  const complete = await completeCopy(copies, shard)
  if (findings.journal.truncatedWithoutSnapshot) {
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
async function untilSynced(options: Repairing, { length }: CompleteCopy): Promise<void> {
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
async function checkAnew({ journal, shard }: Repairing, first: number, last: number): Promise<void> {
  const { firstSeq, lastSeq } = await journal.state()
  const isThere = async (seq: number) =>
    // A node that runs the shard by now purges behind a snapshot of its own.
    seq < firstSeq || (await journal.get(seq))?.msgId === idOf(first, seq - first)
  const isEmpty = lastSeq < firstSeq
  if (isEmpty || lastSeq < last || !(await isThere(first)) || !(await isThere(last)))
    throw new DisturbedRepairError(`shard ${shard}: the broker lost the new journal: run the repair again`)
}

async function newCopy(options: Repairing, { state, settled }: JournalReading): Promise<CompleteCopy> {
  const { journal, shard, copies, findings } = options
  const lostBelow = findings.inbox?.lostBelow ?? null
  if (lostBelow !== null) raiseHorizon(state, lostBelow)
  const uncounted = settled
    .filter(({ commit }) => commit.seq > findings.journal.known.counted.seq)
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
  { boot }: Repairing,
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
async function lastName(options: Repairing, anew: NewJournal): Promise<CommitName> {
  const { commits } = anew.copy
  const [last] = await Array.fromAsync(commitsOf(options, anew, commits))
  return commitName(anew.first + commits, last!)
}

async function writeAnew(options: Repairing, anew: NewJournal): Promise<void> {
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
