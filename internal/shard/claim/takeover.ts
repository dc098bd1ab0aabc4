/**
 * Claiming a shard (docs/architecture/protocol.md, "Claims"): epoch record without expectation, the fold up to it,
 * one conditional commit that proves the claim, and the check that the broker did not lose its tail.
 */

import { readPackHeader } from '../../domain/pack.ts'
import { sleep } from '../../runtime/sleep.ts'
import type { SnapshotArchive } from '../archive/snapshot-archive.ts'
import type { Log, LogState } from '../broker.ts'
import { encodeCommit, encodeRecord } from '../journal/codec.ts'
import type { Journal } from '../journal/journal.ts'
import type { HighWater } from '../journal/records.ts'
import { Refusals } from '../journal/refusals.ts'
import { type FoldState, highestNamed } from '../journal/state.ts'
import { LostTailError, lostMessages, WAY_OUT } from '../lost-tail.ts'
import type { ShardOptions } from '../options.ts'
import { type JournalReading, readJournal } from './journal-reading.ts'

const APPEND_TIMEOUT_MS = 2_000
const RETRY_PAUSE_MS = 50

/** Core messages that ask the owner of a shard to prove that it still is: one that is not any more ends. */
export function proofSubject(shard: number): string {
  return `shard.${shard}.proof`
}

/** What the logs say at a claim. */
export interface Claim extends Omit<JournalReading, 'fault' | 'denied' | 'last'> {
  readonly epoch: number
  /** Of its commit. */
  readonly identity: string | null
}

export interface ClaimOptions extends Pick<ShardOptions, 'broker' | 'shard' | 'clock' | 'boot' | 'claim'> {
  readonly archive: SnapshotArchive
  readonly stopped: () => boolean
  /** The claim is not taken, and tried again; told after 5 s and every 30 s. */
  readonly onRefused?: (error: Error) => void
  /** It is for a repair: the journal may lack a commit that a snapshot names. */
  readonly repairs?: boolean
}

/**
 * Appends the epoch record, folds the journal up to it, and proves the claim by a commit of the journal that `open` makes. Purges of
 * owners before may arrive while the journal is read, and a server that was behind may answer: where something is missing, archive and
 * journal are read again behind the proof. Rejects when stopped, when the journal cannot be read, with FencedError, or with
 * LostTailError when the same is missing twice in a row, with a proof in between and one afterwards.
 */
export async function claimShard<Proven extends Pick<Journal, 'prove'>>(
  options: ClaimOptions,
  open: (epoch: number, state: () => FoldState) => Proven,
): Promise<{ claim: Claim; journal: Proven }> {
  const { broker, archive, clock, shard, repairs = false } = options
  const journalLog = broker.journal(shard)
  const epoch = await appendEpoch(journalLog, options)
  const read = () => readJournal({ journal: journalLog, archive, clock }, epoch)
  // Before it is read: from now on each reconnect stops the journal.
  const journal = open(epoch, () => found.state)
  let found = await read()
  for (;;) {
    await journal.prove()
    const { fault, denied, last, ...claim } = found
    const missing = fault ?? (repairs ? null : denied)
    if (missing === null) return { claim: { ...claim, epoch, identity: last?.identity ?? null }, journal }
    found = await read()
    // The proof was stored behind the claim: a reading that ends before it is of a server that was behind.
    if ((found.fault ?? found.denied) !== missing || found.last?.seq !== epoch) continue
    await journal.prove()
    throw new LostTailError(`shard ${shard}: ${missing}: ${WAY_OUT}`)
  }
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
