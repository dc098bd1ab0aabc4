/** Writes a journal anew above every sequence that was ever used (docs/architecture/repair.md, "The journal"). */

import type { Clock } from '../../runtime/clock.ts'
import { sleep } from '../../runtime/sleep.ts'
import type { SnapshotArchive } from '../archive/snapshot-archive.ts'
import type { Log } from '../broker.ts'
import type { JournalReading } from '../claim/journal-reading.ts'
import { readKept } from '../held/kept.ts'
import { encodeCommit, encodeRecord } from '../journal/codec.ts'
import { type CommitName, commitName } from '../journal/commit-name.ts'
import { raiseHorizon } from '../journal/fold.ts'
import type { JournalRecord } from '../journal/records.ts'
import { encodeSnapshot, freezeState } from '../journal/snapshot.ts'
import type { FoldState } from '../journal/state.ts'
import { type JournalFindings, readWhole } from './examination.ts'
import { copyJournal, epochOf, isComplete, journalOf } from './journal-copy.ts'
import type { JournalCopies } from './ports.ts'

const APPEND_TIMEOUT_MS = 2_000
const RETRY_PAUSE_MS = 50

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
  const { shard, copies, clock, syncLagMs } = options
  const messages = await copyOf(options)
  const first = await firstOf(options)
  const anew = encodeAnew(options, messages, first)
  await options.archive.write(anew.name, encodeSnapshot(freezeState(anew.state)), () => false)
  await untilSynced(options, messages.length)
  if ((await options.archive.read(anew.name)) === undefined)
    throw new DisturbedRepairError('the broker lost the snapshot of the new journal: run the repair again')
  await copies.emptyJournal(shard, first)
  const last = await writeAnew(options, anew.commits, first)
  options.onWhole()
  if (syncLagMs > 0) {
    await sleep(clock, syncLagMs)
    await checkAnew(options, first, last)
  }
  await copies.remove(shard)
}

/** Above whatever was ever used: the clock of this process may be behind. */
async function firstOf({ journal, archive, clock, findings }: JournalRepairOptions): Promise<number> {
  const { lastSeq } = await journal.state()
  const { claim, counted } = findings.known
  const named = (await archive.list()).map(({ name }) => name.seq)
  return Math.max(
    clock.now() * 1_000,
    lastSeq + 1,
    claim.seq + 1,
    counted.seq + 1,
    ...named.map((seq) => seq + 1),
  )
}

/** What the journal is written from. */
async function copyOf(options: JournalRepairOptions): Promise<readonly Uint8Array[]> {
  const { shard, copies, findings } = options
  const old = await copies.load(shard)
  const complete = old && isComplete(old) ? old : undefined
  if (findings.truncatedWithoutSnapshot) {
    if (complete !== undefined) return complete
    throw new JournalGoneError(
      `shard ${shard}: the beginning of the journal is gone and there is no copy of it: restore NATS from a backup`,
    )
  }
  const read = await readWhole(options)
  // Emptied by an earlier run, and come back from a power cut as if it had just been made.
  if (complete !== undefined && epochOf(complete) > read.state.epoch) return complete
  return newCopy(options, read)
}

/** Rejects with DisturbedRepairError when the copy, or the end of the journal, changed meanwhile. */
async function untilSynced(options: JournalRepairOptions, copied: number): Promise<void> {
  const { journal, shard, copies, clock, syncLagMs } = options
  if (syncLagMs === 0) return
  const before = (await journal.state()).lastSeq
  await sleep(clock, syncLagMs)
  const copy = await copies.load(shard)
  if (copy === undefined || copy.length !== copied || !isComplete(copy))
    throw new DisturbedRepairError('the broker lost the copy of the journal: run the repair again')
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

async function newCopy(options: JournalRepairOptions, { state, settled }: JournalReading): Promise<Buffer[]> {
  const { journal, shard, copies, findings, lostBelow } = options
  if (lostBelow !== null) raiseHorizon(state, lostBelow)
  const uncounted = settled
    .filter(({ commit }) => commit.seq > findings.known.counted.seq)
    .map(({ record }) => record)
  const messages = copyJournal({ state, kept: await readKept(journal, state), uncounted })
  await copies.save(shard, messages)
  return messages
}

interface NewJournal {
  /** From `first` on: a claim, what the copy holds, a release. */
  readonly commits: readonly Buffer[]
  /** The last commit before the release, and the state behind it. */
  readonly name: CommitName
  readonly state: FoldState
}

function encodeAnew(
  { boot, clock }: JournalRepairOptions,
  messages: readonly Uint8Array[],
  first: number,
): NewJournal {
  const { commits, state } = journalOf(messages, { epoch: first, boot })
  const at = clock.now()
  const encode = (records: JournalRecord[], epoch: number) =>
    encodeCommit({ boot, epoch, at, highWater: null }, records.map(encodeRecord))
  const encoded = [encode([{ type: 'epoch' }], 0), ...commits.map((records) => encode(records, first))]
  const name = commitName(first + encoded.length - 1, encoded.at(-1)!)
  return { commits: [...encoded, encode([{ type: 'release', batches: [] }], first)], name, state }
}

/** Answers the sequence of the last one. */
async function writeAnew(
  options: JournalRepairOptions,
  commits: readonly Buffer[],
  first: number,
): Promise<number> {
  for (const [number, data] of commits.entries())
    await appendAt(options, data, { msgId: idOf(first, number), seq: first + number })
  return first + commits.length - 1
}

function idOf(first: number, number: number): string {
  return `${first}:${number}`
}

async function appendAt(
  { journal, clock }: JournalRepairOptions,
  data: Uint8Array,
  { msgId, seq }: { msgId: string; seq: number },
): Promise<void> {
  for (;;) {
    const answer = await journal.append(data, { msgId, expectLastSeq: seq - 1, timeoutMs: APPEND_TIMEOUT_MS })
    if (answer.kind === 'stored' && answer.seq === seq) return
    if (answer.kind === 'full') throw new Error('the journal has no room: raise the max_bytes of its stream')
    if (answer.kind === 'stored' || answer.kind === 'wrong-sequence') {
      const last = await journal.last()
      if (last?.seq === seq && last.msgId === msgId) return
      throw new DisturbedRepairError('somebody else writes to the journal')
    }
    await sleep(clock, RETRY_PAUSE_MS)
  }
}
