/** What a shard is made of. */
import type { Batches } from './batches/batches.ts'
import type { BatchesOwner } from './batches/owner.ts'
import type { Restoration } from './claim/restoration.ts'
import type { Housekeeping } from './housekeeping/housekeeping.ts'
import type { FoldState } from './journal/state.ts'

type Shared =
  | 'raised'
  | 'replay'
  | 'journal'
  | 'live'
  | 'payloads'
  | 'groups'
  | 'remoteAttempts'
  | 'projector'

export interface ShardParts extends Pick<BatchesOwner, Shared> {
  readonly epoch: number
  readonly state: FoldState
  readonly batches: Batches
  readonly restoration: Restoration
  readonly housekeeping: Housekeeping
  /** Starts to read the inbox and to answer ingresses. */
  begin(): void
  stopReading(): Promise<void>
  /** Nothing acts any more; the journal is closed by the caller. */
  stop(): void
}
