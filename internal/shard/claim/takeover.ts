/**
 * Claiming a shard (docs/architecture/protocol.md, "Claims"): epoch record without expectation, the fold up to it,
 * one conditional commit that proves the claim, and the check that the broker did not lose its tail.
 */

import { readPackHeader } from '../../domain/pack.ts'
import type { Clock } from '../../runtime/clock.ts'
import { sleep } from '../../runtime/sleep.ts'
import type { Broker, Log, LogMessage, LogState } from '../broker.ts'
import { KeptIndex } from '../held/kept-index.ts'
import { decodeCommit, encodeCommit, encodeRecord } from '../journal/codec.ts'
import { type CommitName, commitName, NO_COMMIT } from '../journal/commit-name.ts'
import { JournalFold, type UnfinishedSnapshot } from '../journal/fold.ts'
import type { Journal } from '../journal/journal.ts'
import type { HighWater, SettledRecord } from '../journal/records.ts'
import { Refusals } from '../journal/refusals.ts'
import { writeSnapshot } from '../journal/snapshot.ts'
import { type FoldState, highestNamed } from '../journal/state.ts'
import { LostTailError, lostMessages, WAY_OUT } from '../lost-tail.ts'

const APPEND_TIMEOUT_MS = 2_000
const RETRY_PAUSE_MS = 50

/** Core messages that ask the owner of a shard to prove that it still is: one that is not any more ends. */
export function proofSubject(shard: number): string {
  return `shard.${shard}.proof`
}

/** What a reading of the journal gave. */
export interface ReadJournal {
  readonly state: FoldState
  /** Of the last complete snapshot: see `JournalFold`. */
  readonly snapshotBegin: number
  /** Of an owner before; null: there is none. */
  readonly unfinished: UnfinishedSnapshot | null
  /** Settled batches found in the journal, in order. */
  readonly settled: { commit: CommitName; record: SettledRecord }[]
  /** The last commit that was read; null: none was. */
  readonly last: LogMessage | null
  /** The sequence that the journal began with when its stream was made; undefined: not known. */
  readonly origin: number | undefined
  /** What was missing, so that `state` is not to be trusted; null: nothing was. */
  readonly fault: string | null
}

export interface Claim extends Omit<ReadJournal, 'fault' | 'last'> {
  readonly epoch: number
  /** Of its commit. */
  readonly identity: string | null
}

export interface ClaimOptions {
  readonly broker: Broker
  readonly shard: number
  readonly clock: Clock
  readonly boot: string
  /** Of this claim among all of this boot. */
  readonly claim: number
  readonly stopped: () => boolean
  /** The claim is not taken, and tried again; told after 5 s and every 30 s. */
  readonly onRefused?: (error: Error) => void
}

/**
 * Appends the epoch record, folds the journal up to it, and proves the claim by a commit of the journal that `open` makes. Purges of
 * owners before may arrive while the journal is read, and a server that was behind may answer: where the fold is not whole, the
 * journal is read again behind the proof. Rejects when stopped, when the journal cannot be read, with FencedError, or with
 * LostTailError when the same commits are missing before the claim twice in a row, with a proof in between and one afterwards.
 */
export async function claimShard<Proven extends Pick<Journal, 'prove'>>(
  options: ClaimOptions,
  open: (epoch: number, state: () => FoldState) => Proven,
): Promise<{ claim: Claim; journal: Proven; kept: KeptIndex }> {
  const log = options.broker.journal(options.shard)
  const epoch = await appendEpoch(log, options)
  let kept = new KeptIndex(options.clock)
  // Before it is read: from now on each reconnect stops the journal.
  const journal = open(epoch, () => found.state)
  let found = await readJournal(log, epoch, kept)
  for (;;) {
    await journal.prove()
    const { fault, last, ...claim } = found
    if (fault === null) return { claim: { ...claim, epoch, identity: identityOf(last) }, journal, kept }
    kept = new KeptIndex(options.clock)
    found = await readJournal(log, epoch, kept)
    // The proof was stored behind the claim: a reading that ends before it is of a server that was behind.
    if (found.fault !== fault || found.state.epoch < epoch) continue
    await journal.prove()
    throw new LostTailError(`shard ${options.shard}: ${fault}: ${WAY_OUT}`)
  }
}

/**
 * What is missing of a snapshot without its end; null when the journal does not tell. Reads the journal again up to the
 * snapshot's begin.
 */
export async function restOf(journal: Log, { begin, parts }: UnfinishedSnapshot): Promise<Buffer | null> {
  const written = Buffer.concat(parts)
  const { state, fault } = await readJournal(journal, begin)
  if (fault !== null) return null
  const whole = writeSnapshot(state)
  return whole.subarray(0, written.length).equals(written) ? whole.subarray(written.length) : null
}

/** Claims: the sequence of the record is the epoch. Repeated until it is stored, or rejects when stopped. */
export async function appendEpoch(
  journal: Log,
  options: Pick<ClaimOptions, 'boot' | 'clock' | 'stopped' | 'onRefused'> & { claim: number | string },
): Promise<number> {
  const { boot, claim, clock, stopped, onRefused = () => {} } = options
  const refusals = new Refusals(clock, onRefused)
  const header = { boot, epoch: 0, at: clock.now(), highWater: null }
  const data = encodeCommit(header, [encodeRecord({ type: 'epoch' })])
  while (!stopped()) {
    // No expectation: a conditional claim starves against a zombie that keeps writing. The last claim wins.
    const answer = await journal.append(data, { msgId: `${boot}:${claim}`, timeoutMs: APPEND_TIMEOUT_MS })
    if (answer.kind === 'stored') return answer.seq
    refusals.again(answer)
    await sleep(clock, RETRY_PAUSE_MS)
  }
  throw new Error('stopped before the claim was stored')
}

function identityOf(commit: LogMessage | null): string | null {
  return commit && commitName(commit.seq, commit.data).identity
}

/**
 * Exported for the repair command and for tests: the fold of everything up to and including the commit at `to`. `kept`: notes where
 * kept items stand.
 */
export async function readJournal(journal: Log, to: number, kept?: KeptIndex): Promise<ReadJournal> {
  const settled: ReadJournal['settled'] = []
  let last: LogMessage | null = null
  const { firstSeq, origin } = await journal.state()
  const fold = new JournalFold(firstSeq, origin ?? firstSeq)
  for await (const message of journal.range(firstSeq, to)) {
    const { seq, data } = message
    last = message
    const commit = decodeCommit(data)
    const applied = fold.apply({ seq, commit })
    await kept?.take({ seq, commit }, data, fold.missingBelow === null ? fold.state : null)
    const over = commit.records.filter(
      (record, index): record is SettledRecord =>
        (record.type === 'done' || record.type === 'dead') && applied[index] === true,
    )
    const name = over.length > 0 ? commitName(seq, data) : NO_COMMIT
    for (const record of over) settled.push({ commit: name, record })
  }
  const { state, snapshotBegin, unfinished } = fold
  return { state, snapshotBegin, unfinished, settled, last, origin, fault: faultOf(fold, to) }
}

/** With sequences: another purge, or another server that is behind, is another fault. */
function faultOf({ lastSeq, missingBelow }: JournalFold, to: number): string | null {
  if (lastSeq < to) return `the journal ends at ${lastSeq}, and a commit at ${to} was stored`
  if (missingBelow === null) return null
  return `the beginning of the journal is gone, below ${missingBelow}, or under repair`
}

/** What an inbox is asked for, when something of it may be lost. */
export type InboxAnswers = Pick<Log, 'state' | 'get'>

/**
 * The inbox at the claim. Rejects with LostTailError when it begins above a message that may hold an item which is not over, ends
 * before a position that the journal names, or as `checkHighWater`. All follows from one answer: the replay ends where it says, and
 * must have passed each item that the journal names.
 */
export async function checkInbox(inbox: InboxAnswers, shard: number, state: FoldState): Promise<LogState> {
  const head = await inbox.state()
  checkBeginning(head, shard, state)
  const named = highestNamed(state)
  if (named > head.lastSeq) throw lostTail(shard, head.lastSeq, named)
  await checkHighWater(inbox, shard, state.highWater)
  return head
}

/**
 * The first message of an inbox that was purged, or made anew, beyond what its journal says is over: what stood below it is lost.
 * null: nothing is. Owners purge only what is below a horizon that is stored.
 */
export function lostBelow({ firstSeq, origin = firstSeq }: LogState, state: FoldState): number | null {
  const { horizon, highWater } = state
  const needed = horizon > 0 ? horizon : Math.min(origin, highWater?.seq ?? origin)
  return firstSeq > needed ? firstSeq : null
}

/** Rejects with LostTailError when the inbox begins above a message that may hold an item which is not over. `state` is read last. */
export async function checkInboxHead(inbox: InboxAnswers, shard: number, state: FoldState): Promise<void> {
  checkBeginning(await inbox.state(), shard, state)
}

function checkBeginning(head: LogState, shard: number, state: FoldState): void {
  const first = lostBelow(head, state)
  if (first !== null)
    throw lostMessages(shard, `the inbox begins at ${first}, and what stood below was not over`)
}

function lostTail(shard: number, lastSeq: number, seen: number): LostTailError {
  return lostMessages(shard, `the inbox ends at ${lastSeq}, an owner saw ${seen}`)
}

/** Rejects with LostTailError when the highest inbox message that an owner saw is neither there nor purged. */
export async function checkHighWater(
  inbox: InboxAnswers,
  shard: number,
  mark: HighWater | null,
): Promise<void> {
  if (!mark) return
  const { firstSeq, lastSeq } = await inbox.state()
  if (mark.seq < firstSeq && mark.seq <= lastSeq) return
  const message = mark.seq <= lastSeq ? await inbox.get(mark.seq) : undefined
  if (message && readPackHeader(message.data).packId === mark.packId) return
  if (!message && mark.seq <= lastSeq && mark.seq < (await inbox.state()).firstSeq) return
  throw lostTail(shard, lastSeq, mark.seq)
}
