/** The two logs of a shard in the hands of an owner, and what it takes to get them. */

import { SnapshotArchive } from './archive/snapshot-archive.ts'
import type { LogState } from './broker.ts'
import { checkInbox } from './claim/inbox-check.ts'
import { appendEpoch, type Claim, claimShard } from './claim/takeover.ts'
import { listKept, type NotedItem } from './held/noted-items.ts'
import { type ReplayState, replayOf } from './held/replay.ts'
import { Journal, type JournalOptions } from './journal/journal.ts'
import { proven } from './journal/proven.ts'
import { endOf, LogWatch } from './log-watch.ts'
import type { ShardEvents, ShardOptions } from './options.ts'

/** The logs in the hands of this owner: a commit has proved the claim, and nothing that it needs is missing. */
export interface ClaimedLogs {
  readonly claim: Claim
  readonly archive: SnapshotArchive
  readonly journal: Journal
  readonly replay: ReplayState
  /** The inbox at the claim. */
  readonly head: LogState
  /** In ascending order of their positions; whoever gives them their places lets them go. */
  readonly kept: NotedItem[]
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
  const { shard, broker, clock, limits } = options
  const writer = `${options.boot}-${options.claim}`
  const { partBytes } = limits.housekeeping
  const archive = new SnapshotArchive({ archive: broker.archive(shard), clock, writer, partBytes })
  const asked = { ...options, archive, stopped: events.ended, onRefused: events.onRefused }
  const { claim, journal } = await claimShard(asked, (epoch, state) =>
    watch.begin(openJournal(options, { writer, epoch, state, highWater: () => watch.mark }, events)),
  )
  const replay = replayOf(claim.state)
  watch.saw({ state: claim.state, replay })
  const { onRefused } = events
  const check = { ...options, inbox: broker.inbox(shard), journal, stopped: events.ended, onRefused }
  const head = await checkInbox(check, claim.state)
  replay.until = Math.min(replay.until, head.lastSeq)
  const kept = await listKept(claim.state, { shard, clock, log: broker.journal(shard), journal })
  await proven(journal, () => journal.look())
  return { claim, archive, journal, replay, head, kept, watch }
}

function openJournal(
  options: ShardOptions,
  own: Pick<JournalOptions, 'writer' | 'epoch' | 'state' | 'highWater'>,
  events: ShardEvents,
): Journal {
  const { broker, shard, claim, telemetry } = options
  const log = broker.journal(shard)
  return new Journal({
    ...options,
    ...own,
    log,
    claimAgain: () => appendEpoch(log, { ...options, claim: `${claim}-again`, stopped: events.ended }),
    onCommit: (event) => {
      events.onCommit()
      telemetry.commit({ shard, ...event })
    },
    onRefused: events.onRefused,
    onLost: (error) => void endOf(options, events, error),
  })
}
