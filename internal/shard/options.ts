/** What a shard is given: the outside of its node, its limits, and whom it tells. Its parts take what they need of it. */
import type { Clock, Randomness } from '../runtime/clock.ts'
import type { Semaphore } from '../runtime/semaphore.ts'
import type { Broker } from './broker.ts'
import type { HousekeepingLimits } from './housekeeping/limits.ts'
import type { DeadLetters, DeletedBuffers, Deliverer, Policies, Projection, ShardTelemetry } from './ports.ts'

export interface ShardLimits {
  /** Payload bytes that a shard keeps in memory; past it messages are dropped and read again. */
  readonly payloadBudget: number
  /** So long a message is kept at most, ms; a batch that needs it later reads it again. */
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
