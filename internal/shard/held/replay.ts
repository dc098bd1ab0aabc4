/**
 * How far an owner has read its inbox. The intake writes it; whatever else depends on it gets it as an argument, so
 * that nothing has to wait for the intake to exist.
 */
import type { HighWater } from '../journal/records.ts'
import type { FoldState } from '../journal/state.ts'

export interface ReplayState {
  /** Next inbox sequence to be read. */
  cursor: number
  /** The highest message that was seen, by this owner or by one before it. */
  highWater: HighWater | null
  /** Until everything has its place that the inbox held at the claim: no group may act before. */
  replaying: boolean
  /** The replay ends once this inbox message is read, or one behind it: the last one at the claim, or an earlier one when the inbox lost that. */
  until: number
}

/** Of an owner that has read nothing yet. */
export function replayOf({ horizon, highWater }: Pick<FoldState, 'horizon' | 'highWater'>): ReplayState {
  return { cursor: horizon, highWater, replaying: true, until: Number.POSITIVE_INFINITY }
}
