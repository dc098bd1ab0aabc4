/** The two logs of a shard in the hands of an owner, and what it takes to get them. */

import type { Log, LogState } from './broker.ts'
import { sureOfInbox } from './claim/fresh-inbox.ts'
import { appendEpoch, type Claim, checkInbox, claimShard, restOf } from './claim/takeover.ts'
import { type IndexedItem, type KeptIndex, listKept } from './held/kept-index.ts'
import { type ReplayState, replayOf } from './held/replay.ts'
import type { FoundJournal, ResumedSnapshot } from './housekeeping/snapshots.ts'
import type { UnfinishedSnapshot } from './journal/fold.ts'
import { Journal, type JournalOptions } from './journal/journal.ts'
import { proven } from './journal/proven.ts'
import { writeSnapshot } from './journal/snapshot.ts'
import { endOf, LogWatch } from './log-watch.ts'
import type { ShardEvents, ShardOptions } from './parts.ts'

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
  /** Of the logs, since the claim. */
  readonly watch: LogWatch
}

/** Claims, folds, proves and checks. Rejects with FencedError or LostTailError. */
export async function claimLogs(options: ShardOptions, events: ShardEvents): Promise<ClaimedLogs> {
  const watch = new LogWatch(options, events)
  try {
    return await claimWatched(options, events, watch)
  } catch (error) {
    watch.stop()
    throw error
  }
}

async function claimWatched(
  options: ShardOptions,
  events: ShardEvents,
  watch: LogWatch,
): Promise<ClaimedLogs> {
  const { shard, broker } = options
  const asked = { ...options, stopped: events.ended, onRefused: events.onRefused }
  const {
    claim: found,
    journal,
    kept,
  } = await claimShard(asked, (epoch, state) =>
    watch.begin(openJournal(options, { epoch, state, highWater: () => watch.mark }, events)),
  )
  const { unfinished, ...claim } = found
  const replay = replayOf(claim.state)
  watch.saw({ state: claim.state, replay })
  const asking = { ...options, inbox: broker.inbox(shard), journal, stopped: events.ended }
  const head = await sureOfInbox(asking, (inbox) => checkInbox(inbox, shard, claim.state))
  replay.until = Math.min(replay.until, head.lastSeq)
  return { claim, journal, replay, head, watch, ...(await readRest(options, journal, found, kept)) }
}

/** What else is read of the journal. */
async function readRest(
  { shard, broker }: ShardOptions,
  journal: Journal,
  { state, unfinished, snapshotBegin }: Claim,
  index: KeptIndex,
): Promise<Pick<ClaimedLogs, 'kept' | 'found'>> {
  const log = broker.journal(shard)
  const kept = await listKept(index, state, { shard, log, journal })
  const { bytes, maxBytes } = await proven(journal, () => journal.look())
  // Whatever the state holds came from records; only where it may matter it is measured.
  const matters = maxBytes > 0 && bytes > maxBytes * MEASURED_SHARE
  // There may be room for the rest of this snapshot, and for no other one beside it.
  const resumed = matters && unfinished ? await resume(log, unfinished) : null
  journal.freeze()(matters ? writeSnapshot(state).length : bytes, resumed?.rest.length)
  return { kept, found: { bytes, snapshotBegin, resumed } }
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
