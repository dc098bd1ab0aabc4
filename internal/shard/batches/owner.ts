/** What an owner gives its batches: each class of this room picks what it takes. */
import type { Duplicates } from '../held/duplicates.ts'
import type { Groups } from '../held/groups.ts'
import type { LiveItems } from '../held/live.ts'
import type { PayloadCache } from '../held/payload-cache.ts'
import type { ReplayState } from '../held/replay.ts'
import type { Journal } from '../journal/journal.ts'
import type { ShardEvents, ShardOptions } from '../options.ts'
import type { Fence } from '../ports.ts'
import type { RemoteAttempts } from './handover.ts'
import type { Projector } from './projector.ts'

type Given =
  | 'shard'
  | 'clock'
  | 'randomness'
  | 'deliverer'
  | 'deadLetters'
  | 'telemetry'
  | 'limits'
  | 'largeWrites'

export interface BatchesOwner
  extends Pick<ShardOptions, Given>,
    Pick<ShardEvents, 'onFatal' | 'onProblem' | 'ended'> {
  readonly fence: Fence
  /** Resolves when Postgres knows this epoch; when it rejects, `onFatal` was called. */
  readonly raised: Promise<void>
  readonly journal: Journal
  readonly replay: Readonly<ReplayState>
  readonly live: LiveItems
  readonly groups: Groups
  readonly duplicates: Duplicates
  readonly payloads: PayloadCache
  readonly projector: Projector
  /** Attempts that the last owner released while they ran. */
  readonly remoteAttempts: RemoteAttempts
  /** Whether this owner may begin an attempt now: nothing says that it was replaced. */
  readonly mayAct: () => boolean
}
