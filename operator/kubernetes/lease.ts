/** The record by which replicas agree on a leader (coordination.k8s.io/v1), and the rules of client-go for reading it. Pure. */

/** As client-go's defaults, ms. */
export const LEASE_MS = 15_000
export const RENEW_DEADLINE_MS = 10_000
export const RETRY_MS = 2_000

export interface LeaseSpec {
  /** Empty: nobody's. */
  holderIdentity?: string
  leaseDurationSeconds?: number
  /** RFC 3339 with six fractional digits, as is `renewTime`. */
  acquireTime?: string
  renewTime?: string
  leaseTransitions?: number
}

export interface Lease {
  apiVersion: 'coordination.k8s.io/v1'
  kind: 'Lease'
  metadata: { name: string; namespace: string; resourceVersion?: string }
  spec?: LeaseSpec
}

/** Unix ms as the API server wants times of leases and events. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z')
}

/**
 * What is known of the record. It runs out by the time that passed here since it was last *seen to change*: the clock of
 * whoever wrote it says nothing.
 */
export class Observation {
  #seen: string | undefined
  #changedAt = 0

  /** `now`: monotonic ms. */
  see(spec: LeaseSpec, now: number): void {
    const record = JSON.stringify([
      spec.holderIdentity,
      spec.leaseDurationSeconds,
      spec.acquireTime,
      spec.renewTime,
      spec.leaseTransitions,
    ])
    if (record === this.#seen) return
    this.#seen = record
    this.#changedAt = now
  }

  /** Whether somebody other than `identity` may still lead. */
  isHeldAgainst(identity: string, spec: LeaseSpec, now: number): boolean {
    const { holderIdentity = '', leaseDurationSeconds = LEASE_MS / 1_000 } = spec
    if (holderIdentity === '' || holderIdentity === identity) return false
    return now < this.#changedAt + leaseDurationSeconds * 1_000
  }
}

/** The record by which `identity` takes or keeps the lease. `now`: Unix ms. */
export function claimed(
  before: LeaseSpec | undefined,
  identity: string,
  leaseMs: number,
  now: number,
): LeaseSpec {
  const time = microTime(now)
  const kept = before?.holderIdentity === identity
  return {
    holderIdentity: identity,
    leaseDurationSeconds: Math.ceil(leaseMs / 1_000),
    acquireTime: (kept && before.acquireTime) || time,
    renewTime: time,
    leaseTransitions: before === undefined ? 0 : (before.leaseTransitions ?? 0) + (kept ? 0 : 1),
  }
}

/** The record of a lease that anybody may take at once. */
export function released(before: LeaseSpec, now: number): LeaseSpec {
  const time = microTime(now)
  return { ...before, holderIdentity: '', leaseDurationSeconds: 1, acquireTime: time, renewTime: time }
}
