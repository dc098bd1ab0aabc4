/** What a shard is made of, what it is given, and what its parts tell it. */
import type { Clock, Randomness } from '../runtime/clock.ts'
import type { Semaphore } from '../runtime/semaphore.ts'
import type { Batches } from './batches/batches.ts'
import type { RemoteAttempts } from './batches/handover.ts'
import type { Projector } from './batches/projector.ts'
import type { Broker } from './broker.ts'
import type { Restoration } from './claim/restoration.ts'
import type { Groups } from './held/groups.ts'
import type { LiveItems } from './held/live.ts'
import type { PayloadCache } from './held/payload-cache.ts'
import type { ReplayState } from './held/replay.ts'
import type { Housekeeping } from './housekeeping/housekeeping.ts'
import type { HousekeepingLimits } from './housekeeping/limits.ts'
import type { Journal } from './journal/journal.ts'
import type { FoldState } from './journal/state.ts'
import type { DeadLetters, DeletedBuffers, Deliverer, Policies, Projection, ShardTelemetry } from './ports.ts'

export interface ShardLimits {
  /** Payload bytes that a shard keeps in memory; past it messages are dropped and read again. */
  readonly payloadBudget: number
  /** So long they are kept at most, ms. */
  readonly payloadMs: number
  /** Attempts at once a buffer and shard. */
  readonly attemptsPerBuffer: number
  /** Settled batches that one transaction counts, about. */
  readonly factsAtOnce: number
  readonly housekeeping: HousekeepingLimits
}

export interface ShardOptions {
  readonly shard: number
  /** UUID of this process's boot. */
  readonly boot: string
  /** Number of this claim among all of this boot. */
  readonly claim: number
  readonly broker: Broker
  readonly clock: Clock
  readonly randomness: Randomness
  readonly policies: Policies
  readonly deliverer: Deliverer
  readonly deadLetters: DeadLetters
  /** Absent: the rows of deleted buffers stay. */
  readonly deletedBuffers?: DeletedBuffers
  readonly projection: Projection
  readonly telemetry: ShardTelemetry
  readonly limits: ShardLimits
  /** Turns of large dead letters, for all shards of the node. */
  readonly largeWrites: Semaphore
  /** Whether the node surely still holds its lease; asked before each attempt. Absent: it does. */
  readonly holds?: () => boolean
  /** Called once when the shard ended by itself: fenced, or an invariant is broken. */
  readonly onEnd: (error: Error) => void
}

export interface ShardEvents {
  /** The shard cannot go on: it was lost, or an invariant is broken. */
  readonly onFatal: (error: Error) => void
  /** Everything that the inbox held at the claim has its place. */
  readonly onReplayed: () => void
  /** The journal does not take what is written. */
  readonly onRefused: (error: Error) => void
  /** It took something. */
  readonly onCommit: () => void
  /** Something failed that is tried again. */
  readonly onProblem: (what: string, error: unknown) => void
  readonly ended: () => boolean
}

export interface ShardParts {
  readonly epoch: number
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
