/** What a tenant may ask for, as the configuration has it: 0 is no limit (docs/reference/api.md, "Limits"). */

import type { HttpTelemetry } from '../../internal/http/ports.ts'
import { createRequestLimits, type RequestLimits } from '../../internal/http/request-limits.ts'
import type { Caps } from '../../internal/postgres/caps.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { TokenBuckets } from '../../internal/runtime/token-buckets.ts'
import type { Config } from '../config/config.ts'

const MINUTE_S = 60
/** Test deliveries that come at once when somebody tries a configuration. */
export const TESTS_AT_ONCE = 5

export type LimitSettings = Pick<
  Config,
  | 'keyRequestsPerSecond'
  | 'testsPerMinute'
  | 'signUpsPerMinute'
  | 'maxCustomers'
  | 'maxProjects'
  | 'maxBuffers'
>

export interface TenantLimits {
  readonly requests: RequestLimits
  readonly tests: Limited
  readonly signUps: Limited
  readonly caps: Caps
}

export interface Limited {
  readonly buckets: TokenBuckets
  readonly onLimited: () => void
}

export function createTenantLimits(
  settings: LimitSettings,
  clock: Clock,
  telemetry: Pick<HttpTelemetry, 'limited'>,
): TenantLimits {
  const perMinute = (count: number, burst: number) =>
    new TokenBuckets({ clock, perSecond: unlessZero(count) / MINUTE_S, burst })
  return {
    requests: createRequestLimits({ clock, perSecond: unlessZero(settings.keyRequestsPerSecond), telemetry }),
    tests: {
      buckets: perMinute(settings.testsPerMinute, TESTS_AT_ONCE),
      onLimited: () => telemetry.limited('test'),
    },
    signUps: {
      buckets: perMinute(settings.signUpsPerMinute, Math.max(1, settings.signUpsPerMinute)),
      onLimited: () => telemetry.limited('sign-up'),
    },
    caps: {
      customers: unlessZero(settings.maxCustomers),
      projects: unlessZero(settings.maxProjects),
      buffers: unlessZero(settings.maxBuffers),
    },
  }
}

function unlessZero(limit: number): number {
  return limit === 0 ? Number.POSITIVE_INFINITY : limit
}
