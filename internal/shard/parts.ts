/** What a shard is made of. */
import type { Batches } from './batches/batches.ts'
import type { RemoteAttempts } from './batches/handover.ts'
import type { Projector } from './batches/projector.ts'
import type { Restoration } from './claim/restoration.ts'
import type { Groups } from './held/groups.ts'
import type { LiveItems } from './held/live.ts'
import type { PayloadCache } from './held/payload-cache.ts'
import type { ReplayState } from './held/replay.ts'
import type { Housekeeping } from './housekeeping/housekeeping.ts'
import type { Journal } from './journal/journal.ts'
import type { FoldState } from './journal/state.ts'

export interface ShardParts {
  readonly epoch: number
  /** Resolves when Postgres knows the epoch; when it rejects, `onFatal` was called. */
  readonly raised: Promise<void>
  readonly state: FoldState
  readonly replay: Readonly<ReplayState>
  readonly journal: Journal
  readonly live: LiveItems
  readonly payloads: PayloadCache
  readonly groups: Groups
  readonly batches: Batches
  readonly restoration: Restoration
  /** Attempts at the last owner. */
  readonly remoteAttempts: RemoteAttempts
  readonly projector: Projector
  readonly housekeeping: Housekeeping
  /** Starts to read the inbox and to answer ingresses. */
  begin(): void
  stopReading(): Promise<void>
  /** Nothing acts any more; the journal is closed by the caller. */
  stop(): void
}
