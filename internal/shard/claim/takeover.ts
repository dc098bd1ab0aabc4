/**
 * Claiming a shard (docs/architecture/protocol.md, "Claims"): epoch record without expectation, the fold up to it,
 * one conditional commit that proves the claim, and the check that the broker did not lose its tail.
 */

import { readPackHeader } from '../../domain/pack.ts'
import type { Clock } from '../../runtime/clock.ts'
import { sleep } from '../../runtime/sleep.ts'
import type { Broker, Log, LogState } from '../broker.ts'
import { decodeCommit, encodeCommit, encodeRecord } from '../journal/codec.ts'
import { JournalFold, type UnfinishedSnapshot } from '../journal/fold.ts'
import type { HighWater } from '../journal/records.ts'
import { Refusals } from '../journal/refusals.ts'
import { writeSnapshot } from '../journal/snapshot.ts'
import { type FoldState, highestNamed } from '../journal/state.ts'
import { LostTailError, lostMessages, WAY_OUT } from '../lost-tail.ts'
import type { DeliveryFact } from '../ports.ts'

const APPEND_TIMEOUT_MS = 2_000
const RETRY_PAUSE_MS = 50

/** Core messages that ask the owner of a shard to prove that it still is: one that is not any more ends. */
export function proofSubject(shard: number): string {
  return `shard.${shard}.proof`
}

export interface Claim {
  readonly epoch: number
  readonly state: FoldState
  /** Of the last complete snapshot: see `JournalFold`. */
  readonly snapshotBegin: number
  /** Of an owner before; null: there is none. */
  readonly unfinished: UnfinishedSnapshot | null
  /** Settled batches found in the journal, in order. */
  readonly facts: { seq: number; fact: DeliveryFact }[]
  /** Messages were purged from the beginning of the journal, and no snapshot holds what they said. */
  readonly truncatedWithoutSnapshot: boolean
  /** The sequence that the journal began with when its stream was made; undefined: not known. */
  readonly origin: number | undefined
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

/** Appends the epoch record and folds the journal up to it. Rejects when stopped, or when the journal cannot be read. */
export async function claimShard(options: ClaimOptions): Promise<Claim> {
  const journal = options.broker.journal(options.shard)
  const epoch = await appendEpoch(journal, options)
  const { fold, ...found } = await foldJournal(journal, epoch)
  const { state, snapshotBegin, unfinished } = fold
  return { epoch, state, snapshotBegin, unfinished, ...found }
}

/**
 * What is missing of a snapshot without its end; null when the journal does not tell. Reads the journal again up to the
 * snapshot's begin.
 */
export async function restOf(journal: Log, { begin, parts }: UnfinishedSnapshot): Promise<Buffer | null> {
  const written = Buffer.concat(parts)
  const { fold } = await foldJournal(journal, begin)
  const whole = writeSnapshot(fold.state)
  return whole.subarray(0, written.length).equals(written) ? whole.subarray(written.length) : null
}

/** Claims: the sequence of the record is the epoch. Repeated until it is stored, or rejects when stopped. */
export async function appendEpoch(
  journal: Log,
  options: Pick<ClaimOptions, 'boot' | 'claim' | 'clock' | 'stopped' | 'onRefused'>,
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

/** Exported for the repair command and for tests: the fold of everything up to and including `to`. */
export async function foldJournal(
  journal: Log,
  to: number,
): Promise<{ fold: JournalFold } & Pick<Claim, 'facts' | 'truncatedWithoutSnapshot' | 'origin'>> {
  const fold = new JournalFold()
  const facts: { seq: number; fact: DeliveryFact; applied: boolean }[] = []
  const { firstSeq, origin } = await journal.state()
  for await (const message of journal.range(firstSeq, to)) {
    const commit = decodeCommit(message.data)
    const applied = fold.apply({ seq: message.seq, commit })
    commit.records.forEach((record, index) => {
      if (record.type !== 'done' && record.type !== 'dead') return
      facts.push({ seq: message.seq, fact: record.fact, applied: applied[index] ?? false })
    })
    if (fold.restoredAt === message.seq) markApplied(facts)
  }
  return {
    fold,
    facts: facts.filter(({ applied }) => applied).map(({ seq, fact }) => ({ seq, fact })),
    truncatedWithoutSnapshot: firstSeq > (origin ?? firstSeq) && fold.restoredAt === 0,
    origin,
  }
}

/** Before the first snapshot of a purged journal the fold misses batches whose seals are gone: their facts count. */
function markApplied(facts: { applied: boolean }[]): void {
  for (const fact of facts) fact.applied = true
}

/**
 * To be called once the claim is proven. Purges by an owner leave a complete snapshot: a journal without one was
 * emptied by somebody else, or is being repaired. Throws LostTailError.
 */
export function checkJournalHead(
  shard: number,
  { truncatedWithoutSnapshot }: Pick<Claim, 'truncatedWithoutSnapshot'>,
): void {
  if (!truncatedWithoutSnapshot) return
  throw new LostTailError(`shard ${shard}: the beginning of the journal is gone, or under repair: ${WAY_OUT}`)
}

/** Rejects with LostTailError when the inbox ends before a position that the journal names, or as `checkHighWater`. */
export async function checkInboxTail(inbox: Log, shard: number, state: FoldState): Promise<void> {
  const named = highestNamed(state)
  const { lastSeq } = await inbox.state()
  if (named > lastSeq) throw lostTail(shard, lastSeq, named)
  await checkHighWater(inbox, shard, state.highWater)
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
export async function checkInboxHead(inbox: Log, shard: number, state: FoldState): Promise<void> {
  const first = lostBelow(await inbox.state(), state)
  if (first === null) return
  throw lostMessages(shard, `the inbox begins at ${first}, and what stood below was not over`)
}

function lostTail(shard: number, lastSeq: number, seen: number): LostTailError {
  return lostMessages(shard, `the inbox ends at ${lastSeq}, an owner saw ${seen}`)
}

/** Rejects with LostTailError when the highest inbox message that an owner saw is neither there nor purged. */
export async function checkHighWater(inbox: Log, shard: number, mark: HighWater | null): Promise<void> {
  if (!mark) return
  const { firstSeq, lastSeq } = await inbox.state()
  if (mark.seq < firstSeq && mark.seq <= lastSeq) return
  const message = mark.seq <= lastSeq ? await inbox.get(mark.seq) : undefined
  if (message && readPackHeader(message.data).packId === mark.packId) return
  if (!message && mark.seq <= lastSeq && mark.seq < (await inbox.state()).firstSeq) return
  throw lostTail(shard, lastSeq, mark.seq)
}
