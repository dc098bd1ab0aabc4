/**
 * Claiming a shard (docs/architecture/protocol.md, "Claims"): epoch record without expectation, the fold up to it,
 * and one conditional commit that proves the claim.
 */

import { sleep } from '../../runtime/sleep.ts'
import type { SnapshotArchive } from '../archive/snapshot-archive.ts'
import type { Log } from '../broker.ts'
import { encodeCommit, encodeRecord } from '../journal/codec.ts'
import type { Journal } from '../journal/journal.ts'
import { Refusals } from '../journal/refusals.ts'
import { emptyState, type FoldState } from '../journal/state.ts'
import { LostTailError, WAY_OUT } from '../lost-tail.ts'
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
  // Before the journal is read: from now on each reconnect stops it. A proof that is stored meanwhile changes no state.
  let state = emptyState()
  const journal = open(epoch, () => state)
  let found = await read()
  for (;;) {
    state = found.state
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
