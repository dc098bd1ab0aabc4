/** The two logs of a shard in the hands of an owner: what it takes to get them, and to trust them after a reconnect. */

import { sleep } from '../runtime/sleep.ts'
import type { Log, LogState } from './broker.ts'
import { rememberLoss } from './claim/epoch.ts'
import {
  type Claim,
  checkHighWater,
  checkInboxHead,
  checkInboxTail,
  checkJournalHead,
  claimShard,
  restOf,
} from './claim/takeover.ts'
import { type KeptEntry, readKept } from './held/kept.ts'
import { type ReplayState, replayOf } from './held/replay.ts'
import type { FoundJournal, ResumedSnapshot } from './housekeeping/snapshots.ts'
import type { UnfinishedSnapshot } from './journal/fold.ts'
import { Journal } from './journal/journal.ts'
import { writeSnapshot } from './journal/snapshot.ts'
import { LostTailError } from './lost-tail.ts'
import type { ShardEvents, ShardOptions } from './parts.ts'

/** Between two checks of logs that do not answer, ms. */
const CHECK_PAUSE_MS = 500

/** Of the journal's `max_bytes`: from there on a claim measures the size of the state, and goes on with an unfinished snapshot. */
const MEASURED_SHARE = 0.25

/** The logs in the hands of this owner: a commit has proved the claim, and nothing that it needs is missing. */
export interface ClaimedLogs {
  readonly claim: Omit<Claim, 'unfinished'>
  readonly journal: Journal
  readonly replay: ReplayState
  /** The inbox at the claim. */
  readonly head: LogState
  /** In ascending order of their positions. */
  readonly kept: readonly KeptEntry[]
  /** The journal at the claim, as housekeeping finds it. */
  readonly found: FoundJournal
}

/** Claims, folds, proves and checks. Rejects with FencedError or LostTailError. */
export async function claimLogs(options: ShardOptions, events: ShardEvents): Promise<ClaimedLogs> {
  const { shard, broker } = options
  const [inbox, journalLog] = [broker.inbox(shard), broker.journal(shard)]
  const asked = { ...options, stopped: events.ended, onRefused: events.onRefused }
  const { unfinished, ...claim } = await claimShard(asked)
  const replay = replayOf(claim.state)
  const journal = openJournal(options, claim, replay, events)
  await journal.prove()
  checkJournalHead(shard, claim)
  await checkInboxHead(inbox, shard, claim.state).catch(unlessFenced(journal))
  await checkInboxTail(inbox, shard, claim.state)
  const head = await inbox.state()
  const kept = await readKept(journalLog, claim.state).catch(unlessFenced(journal))
  const { bytes, maxBytes } = await journal.look()
  // Whatever the state holds came from records; only where it may matter it is measured.
  const matters = maxBytes > 0 && bytes > maxBytes * MEASURED_SHARE
  // There may be room for the rest of this snapshot, and for no other one beside it.
  const resumed = matters && unfinished ? await resume(journalLog, unfinished) : null
  journal.stateIs(matters ? writeSnapshot(claim.state).length : bytes, resumed?.rest.length)
  const found = { bytes, snapshotBegin: claim.snapshotBegin, resumed }
  return { claim, journal, replay, head, kept, found }
}

/** null: nothing of it is written, or the journal does not tell the rest. */
async function resume(journal: Log, unfinished: UnfinishedSnapshot): Promise<ResumedSnapshot | null> {
  const { begin, parts } = unfinished
  const written = parts.reduce((sum, { length }) => sum + length, 0)
  const rest = written > 0 ? await restOf(journal, unfinished) : null
  return rest && { begin, rest, bytes: written + rest.length }
}

function openJournal(
  options: ShardOptions,
  claim: Pick<Claim, 'epoch' | 'state'>,
  replay: Readonly<ReplayState>,
  events: ShardEvents,
): Journal {
  const { broker, shard, clock, boot, telemetry } = options
  return new Journal({
    shard,
    log: broker.journal(shard),
    clock,
    boot,
    epoch: claim.epoch,
    state: claim.state,
    lastSeq: claim.epoch,
    highWater: () => replay.highWater,
    onCommit: (event) => {
      events.onCommit()
      telemetry.commit({ shard, ...event })
    },
    onRefused: events.onRefused,
    onLost: (error) => void endOf(options, events, error),
  })
}

/**
 * After every reconnect the broker must still have what this owner saw and wrote (docs/architecture/protocol.md, "Lost
 * tail"). Asks until it is told: a broker that is just back may have no leader of the logs yet. A later check replaces it.
 */
export async function checkLogs(
  options: ShardOptions,
  events: ShardEvents,
  logs: ClaimedLogs,
  isLatest: () => boolean,
): Promise<void> {
  let told = false
  while (isLatest() && !events.ended()) {
    try {
      return await checkOnce(options, logs)
    } catch (error) {
      if (events.ended()) return
      if (error instanceof LostTailError) return await endOf(options, events, error)
      if (!told) events.onProblem('the logs cannot be checked', error)
      told = true
    }
    await sleep(options.clock, CHECK_PAUSE_MS)
  }
}

async function checkOnce(
  { broker, shard }: ShardOptions,
  { claim, journal, replay }: ClaimedLogs,
): Promise<void> {
  await journal.checkTail()
  await checkHighWater(broker.inbox(shard), shard, replay.highWater)
  await checkInboxHead(broker.inbox(shard), shard, claim.state).catch(unlessFenced(journal))
}

async function endOf(
  { deadLetters, shard, clock }: ShardOptions,
  events: ShardEvents,
  error: Error,
): Promise<void> {
  events.onFatal(error)
  // Known to this owner alone: not all that it saw is written down.
  if (error instanceof LostTailError) await rememberLoss(deadLetters, shard, clock)
}

/** What a successor carried forward or purged is over: only after another commit it is a loss. */
function unlessFenced(journal: Journal): (error: unknown) => Promise<never> {
  return async (error) => {
    await journal.prove()
    throw error
  }
}
