/** The two logs of a shard in the hands of an owner: what it takes to get them, and to trust them after a reconnect. */

import { sleep } from '../runtime/sleep.ts'
import type { Log, LogState } from './broker.ts'
import { rememberLoss } from './claim/epoch.ts'
import { sureOfInbox } from './claim/fresh-inbox.ts'
import {
  appendEpoch,
  type Claim,
  checkHighWater,
  checkInbox,
  checkInboxHead,
  claimShard,
  restOf,
} from './claim/takeover.ts'
import { type IndexedItem, listKept } from './held/kept-index.ts'
import { type ReplayState, replayOf } from './held/replay.ts'
import type { FoundJournal, ResumedSnapshot } from './housekeeping/snapshots.ts'
import type { UnfinishedSnapshot } from './journal/fold.ts'
import { Journal, type JournalOptions } from './journal/journal.ts'
import { proven } from './journal/proven.ts'
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
  /** In ascending order of their positions; whoever gives them their places lets them go. */
  readonly kept: IndexedItem[]
  /** The journal at the claim, as housekeeping finds it. */
  readonly found: FoundJournal
}

/** Claims, folds, proves and checks. Rejects with FencedError or LostTailError. */
export async function claimLogs(options: ShardOptions, events: ShardEvents): Promise<ClaimedLogs> {
  const { shard, broker } = options
  const [inbox, log] = [broker.inbox(shard), broker.journal(shard)]
  const asked = { ...options, stopped: events.ended, onRefused: events.onRefused }
  let replay: ReplayState | null = null
  const highWater = () => replay?.highWater ?? null
  const {
    claim: found,
    journal,
    kept: index,
  } = await claimShard(asked, (epoch, state) => openJournal(options, { epoch, state, highWater }, events))
  const { unfinished, ...claim } = found
  replay = replayOf(claim.state)
  const asking = { ...options, inbox, journal, stopped: events.ended }
  const head = await sureOfInbox(asking, (log) => checkInbox(log, shard, claim.state))
  const kept = await listKept(index, claim.state, { shard, log, journal })
  const { bytes, maxBytes } = await proven(journal, () => journal.look())
  // Whatever the state holds came from records; only where it may matter it is measured.
  const matters = maxBytes > 0 && bytes > maxBytes * MEASURED_SHARE
  // There may be room for the rest of this snapshot, and for no other one beside it.
  const resumed = matters && unfinished ? await resume(log, unfinished) : null
  journal.freeze()(matters ? writeSnapshot(claim.state).length : bytes, resumed?.rest.length)
  return { claim, journal, replay, head, kept, found: { bytes, snapshotBegin: claim.snapshotBegin, resumed } }
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
  own: Pick<JournalOptions, 'epoch' | 'state' | 'highWater'>,
  events: ShardEvents,
): Journal {
  const { broker, shard, clock, boot, claim, telemetry } = options
  const log = broker.journal(shard)
  return new Journal({
    ...own,
    shard,
    log,
    clock,
    boot,
    lastSeq: own.epoch,
    claimAgain: () => appendEpoch(log, { ...options, claim: `${claim}-again`, stopped: events.ended }),
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
      return await checkOnce(options, events, logs)
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
  options: ShardOptions,
  events: ShardEvents,
  { claim, journal, replay }: ClaimedLogs,
): Promise<void> {
  const { broker, shard } = options
  await journal.checkTail()
  const asking = { ...options, inbox: broker.inbox(shard), journal, stopped: events.ended }
  // A message that is read meanwhile may stand behind the probe.
  const mark = replay.highWater
  await sureOfInbox(asking, async (log) => {
    await checkHighWater(log, shard, mark)
    await checkInboxHead(log, shard, claim.state)
  })
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
