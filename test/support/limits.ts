import type { Limited } from '../../cmd/wiring/limits.ts'
import { TokenBuckets } from '../../internal/runtime/token-buckets.ts'

/** Where a test is about something else. */
export const UNLIMITED: Limited = {
  buckets: new TokenBuckets({ clock: { monotonic: () => 0 }, perSecond: Number.POSITIVE_INFINITY, burst: 1 }),
  onLimited: () => {},
}
