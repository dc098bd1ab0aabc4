/** How often a credential and an account may ask the management API (docs/reference/api.md, "Limits"). */
import { ServiceError } from '../domain/errors.ts'
import type { Principal } from '../domain/principal.ts'
import type { Clock } from '../runtime/clock.ts'
import { Semaphores } from '../runtime/semaphores.ts'
import { TokenBuckets } from '../runtime/token-buckets.ts'
import type { HttpTelemetry } from './ports.ts'

export interface RequestLimits {
  /** null, or 429 with `Retry-After`. To be asked as soon as it is known who asks, and once a request. */
  refusal(principal: Principal): ServiceError | null
  /** Runs `work` of a customer, once fewer than `AT_ONCE` others of the customer run. Without a rate nothing waits. */
  inTurn<T>(customerId: string, work: () => Promise<T>): Promise<T>
}

export interface RequestLimitsOptions {
  readonly clock: Clock
  /** Requests of one key, and of one account with ID tokens; Infinity: any (`PENSTOCK_KEY_REQUESTS_PER_SECOND`). */
  readonly perSecond: number
  readonly telemetry: Pick<HttpTelemetry, 'limited'>
}

/** Seconds of the rate that may come at once. */
export const BURST_SECONDS = 2
/** All keys and tokens of a customer together may ask so many times as often as one of them. */
export const CUSTOMER_RATIO = 2

/** Requests of a customer that a process works on at once. A burst is spread by it, so that others are served in between. */
export const AT_ONCE = 2

export function createRequestLimits({ clock, perSecond, telemetry }: RequestLimitsOptions): RequestLimits {
  const bucketsOf = (rate: number) =>
    new TokenBuckets({ clock, perSecond: rate, burst: Math.max(1, rate * BURST_SECONDS) })
  const credentials = bucketsOf(perSecond)
  const customers = bucketsOf(perSecond * CUSTOMER_RATIO)
  const turns = new Semaphores(perSecond === Number.POSITIVE_INFINITY ? perSecond : AT_ONCE)
  return {
    inTurn: (customerId, work) => turns.run(customerId, work),
    refusal({ customerId, keyId }) {
      const ofCredential = credentials.take(keyId ?? `token ${customerId}`)
      // One that its own bucket refuses takes nothing from the others of its customer.
      const waitMs = ofCredential > 0 ? ofCredential : customers.take(customerId)
      if (waitMs === 0) return null
      telemetry.limited(ofCredential > 0 ? 'key' : 'customer')
      return new ServiceError('requestRate', {}, { retryAfterMs: waitMs })
    },
  }
}
