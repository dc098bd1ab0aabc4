import type { Clock } from './clock.ts'

/**
 * A moment on both clocks of a process, for whatever must not outlive a bound on other machines.
 *
 * The monotonic clock stands still while the machine is suspended, and the wall clock does not. The wall clock may be
 * set back, and the monotonic clock may not. So the longer of the two spans is the one to believe.
 */
export interface Moment {
  /** Monotonic ms. */
  readonly monotonic: number
  /** Unix ms. */
  readonly wall: number
}

type BothClocks = Pick<Clock, 'monotonic' | 'now'>

/** The present. */
export function momentOf(clock: BothClocks): Moment {
  return { monotonic: clock.monotonic(), wall: clock.now() }
}

/** How long ago `moment` was at least, ms. A wall clock that is set forward makes it longer than it was. */
export function elapsedSince(clock: BothClocks, moment: Moment): number {
  return Math.max(clock.monotonic() - moment.monotonic, clock.now() - moment.wall)
}
