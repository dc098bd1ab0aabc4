/** What an owner gives its housekeeping: each class of this room takes it, and what is its own. */
import type { SnapshotArchive } from '../archive/snapshot-archive.ts'
import type { BatchesOwner } from '../batches/owner.ts'
import type { Log } from '../broker.ts'
import type { Intake } from '../claim/intake.ts'
import type { SeenPacks } from '../journal/seen-packs.ts'
import type { FoldState } from '../journal/state.ts'
import type { HousekeepingLimits } from './limits.ts'

type Shared = 'clock' | 'onProblem' | 'journal' | 'replay' | 'live' | 'payloads' | 'duplicates' | 'projector'

export interface HousekeepingOwner extends Pick<BatchesOwner, Shared> {
  readonly limits: HousekeepingLimits
  readonly archive: SnapshotArchive
  readonly inboxLog: Log
  readonly journalLog: Log
  readonly state: FoldState
  readonly intake: Intake
  readonly packs: SeenPacks
  readonly stopped: () => boolean
}
