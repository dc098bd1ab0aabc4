/** What an owner gives its housekeeping: each class of this room takes it, and what is its own. */
import type { SnapshotArchive } from '../archive/snapshot-archive.ts'
import type { Projector } from '../batches/projector.ts'
import type { Log } from '../broker.ts'
import type { Intake } from '../claim/intake.ts'
import type { Duplicates } from '../held/duplicates.ts'
import type { LiveItems } from '../held/live.ts'
import type { PackMemory } from '../held/pack-memory.ts'
import type { PayloadCache } from '../held/payload-cache.ts'
import type { ReplayState } from '../held/replay.ts'
import type { Journal } from '../journal/journal.ts'
import type { FoldState } from '../journal/state.ts'
import type { ShardEvents, ShardOptions } from '../options.ts'
import type { HousekeepingLimits } from './limits.ts'

export interface HousekeepingOwner extends Pick<ShardOptions, 'clock'>, Pick<ShardEvents, 'onProblem'> {
  readonly limits: HousekeepingLimits
  readonly archive: SnapshotArchive
  readonly inboxLog: Log
  readonly journalLog: Log
  readonly journal: Journal
  readonly state: FoldState
  readonly replay: Readonly<ReplayState>
  readonly intake: Intake
  readonly packs: PackMemory
  readonly live: LiveItems
  readonly payloads: PayloadCache
  readonly duplicates: Duplicates
  readonly projector: Projector
  readonly stopped: () => boolean
}
