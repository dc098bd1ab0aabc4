/** What analytics need of Postgres. Every call rejects while it is away. */

import type { Scope } from '../domain/principal.ts'

/** What happened on one UTC day within a scope. */
export interface DayCounts {
  /** `YYYY-MM-DD` */
  day: string
  /** Items accepted; a duplicate is none. */
  ingested: number
  /** Batches that a destination accepted. */
  delivered: number
  /** Batches that went to the dead letter queue. */
  dead: number
  /** Attempts after the first, of delivered and dead batches. */
  retries: number
  itemsDelivered: number
  itemsDead: number
  /** Batches by bucket of `timeToFlushBounds`, not cumulative. */
  timeToFlush: number[]
  /** Batches by bucket of `deliveryDurationBounds`, not cumulative. */
  deliveryDuration: number[]
}

/** Both together: only what is in both. An id that names nothing within the scope has no numbers. */
export interface AnalyticsFilter {
  projectId?: string
  /** Every buffer that bears or bore this id. */
  bufferId?: string
}

/** First and last UTC day, both included, `YYYY-MM-DD`. */
export interface DayRange {
  from: string
  to: string
}

export interface AnalyticsStore {
  /** Days on which anything happened, oldest first. Deleted buffers and projects count with what they did. */
  days(scope: Scope, filter: AnalyticsFilter, range: DayRange): Promise<DayCounts[]>
  /** What there is now, without what is deleted. */
  resources(scope: Scope): Promise<{ projects: number; buffers: number }>
}

/** Moves days that are over to where they are read quickly, and removes what nobody can ask for any more. It changes no number. */
export interface OpenDays {
  /**
   * Closes at most `limit` rows of days before yesterday; answers how many it closed, 0: none is left,
   * or another node is at it. Any number of nodes may call it at any time.
   */
  close(limit: number): Promise<number>
  /**
   * Removes at most `limit` closed rows that no range reaches any more, and as many owners of buffers that are gone
   * and have no numbers left; answers how many, 0 as `close`.
   */
  prune(limit: number): Promise<number>
}
