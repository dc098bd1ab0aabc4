/**
 * One leader of several replicas, by a Lease, as client-go elects it. Invariant: a replica leads only while its last renewal
 * began less than the renew deadline ago, which is shorter than what every other one waits before it takes the lease.
 * Every write names the version that was read, so of two takers one is refused.
 */
import type { Clock, Randomness } from '../../internal/runtime/clock.ts'
import { elapsedSince, type Moment, momentOf } from '../../internal/runtime/moment.ts'
import { pause } from '../../internal/runtime/pause.ts'
import { ApiError, hasStatus } from './api-error.ts'
import type { ApiServer } from './api-server.ts'
import { claimed, LEASE_MS, type Lease, Observation, RENEW_DEADLINE_MS, RETRY_MS, released } from './lease.ts'

/** client-go's: a follower waits up to so much longer than the retry period, that two do not try in step. */
const JITTER = 1.2

export interface ElectionLog {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
}

export interface LeaderElectionOptions {
  api: ApiServer
  namespace: string
  name: string
  /** Unique to this process: a pod's name is not, once it is made anew. */
  identity: string
  clock: Clock
  randomness: Pick<Randomness, 'fraction'>
  log: ElectionLog
  /** Milliseconds; defaults 15, 10 and 2 s. */
  timing?: { leaseMs: number; renewDeadlineMs: number; retryMs: number }
}

export class LeaderElection {
  readonly #options: LeaderElectionOptions
  readonly #timing: { leaseMs: number; renewDeadlineMs: number; retryMs: number }
  readonly #observation = new Observation()
  readonly #stop = new AbortController()
  /** As last read or written. */
  #lease: Lease | undefined
  #renewedAt: Moment | undefined
  #running: Promise<void> | undefined

  constructor(options: LeaderElectionOptions) {
    this.#options = options
    this.#timing = options.timing ?? {
      leaseMs: LEASE_MS,
      renewDeadlineMs: RENEW_DEADLINE_MS,
      retryMs: RETRY_MS,
    }
  }

  /** Whether this replica leads now; false also where it could not renew in time and nobody has noticed yet. */
  get leading(): boolean {
    return this.#leftMs() > 0
  }

  /**
   * Tries until it leads, then calls `onLeading`, then renews until that fails for the renew deadline or somebody else
   * has the lease: `onLost`, after which the process should end. Never rejects.
   */
  run(onLeading: () => void, onLost: (error: Error) => void): void {
    this.#running ??= this.#campaign(onLeading, onLost)
  }

  /** Gives the lease back when it is held, so that another replica takes it at once. Rejects when that failed. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#running
    const { leading } = this
    this.#renewedAt = undefined
    try {
      await this.#release(AbortSignal.timeout(this.#timing.retryMs))
    } catch (error) {
      if (leading) throw error
    }
  }

  /** Reads first: a write that the stop cut off may stand there all the same. */
  async #release(signal: AbortSignal): Promise<void> {
    const { clock, log, identity } = this.#options
    await this.#read(signal)
    if (this.#lease?.spec?.holderIdentity !== identity) return
    await this.#write({ ...this.#lease, spec: released(this.#lease.spec, clock.now()) }, signal)
    log.info(this.#names(), 'leadership released')
  }

  async #campaign(onLeading: () => void, onLost: (error: Error) => void): Promise<void> {
    const { clock, log, randomness, identity } = this.#options
    while (!(await this.#attempt(this.#timing.renewDeadlineMs))) {
      await pause(clock, this.#timing.retryMs * (1 + JITTER * randomness.fraction()), this.#stop.signal)
      if (this.#stop.signal.aborted) return
    }
    if (this.#stop.signal.aborted) return
    log.info({ ...this.#names(), identity }, 'leading')
    onLeading()
    const lost = await this.#keep()
    if (lost === undefined) return
    this.#renewedAt = undefined
    onLost(lost)
  }

  /** Renews until the stop (undefined) or until the lease is lost (why). */
  async #keep(): Promise<Error | undefined> {
    const { clock } = this.#options
    for (;;) {
      await pause(clock, Math.min(this.#timing.retryMs, this.#leftMs()), this.#stop.signal)
      if (this.#stop.signal.aborted) return undefined
      if (this.#leftMs() <= 0) return new Error('the lease was not renewed in time')
      if (await this.#attempt(this.#leftMs())) continue
      if (this.#isAnothers()) return new Error(`the lease went to ${this.#lease?.spec?.holderIdentity}`)
    }
  }

  /** Until the renew deadline, ms. */
  #leftMs(): number {
    const { clock } = this.#options
    if (this.#renewedAt === undefined) return Number.NEGATIVE_INFINITY
    return this.#timing.renewDeadlineMs - elapsedSince(clock, this.#renewedAt)
  }

  #isAnothers(): boolean {
    const { identity } = this.#options
    const holder = this.#lease?.spec?.holderIdentity
    return holder !== undefined && holder !== identity
  }

  /** One try to take or to renew, of at most `ms` milliseconds; whether the lease is held now. */
  async #attempt(ms: number): Promise<boolean> {
    const { clock, log } = this.#options
    const began = momentOf(clock)
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(Math.max(1, Math.ceil(ms)))])
    try {
      const held = await this.#takeOrRenew(signal)
      // From before the request: when the answer was on its way for long, others have waited as long.
      if (held) this.#renewedAt = began
      return held
    } catch (error) {
      if (this.#stop.signal.aborted) return false
      // Refused for its version: somebody wrote meanwhile, and only a new read tells who.
      if (hasStatus(error, 409, 404)) await this.#read(signal).catch(() => undefined)
      log.warn({ ...this.#names(), err: error }, 'the lease could not be written')
      return false
    }
  }

  async #takeOrRenew(signal: AbortSignal): Promise<boolean> {
    const { clock, identity } = this.#options
    // A leader's renewal is one request: what it wrote last is what stands there, or it is refused.
    if (!this.leading) await this.#read(signal)
    const before = this.#lease?.spec
    if (before && this.#observation.isHeldAgainst(identity, before, clock.monotonic())) return false
    const spec = claimed(before, identity, this.#timing.leaseMs, clock.now())
    await this.#write({ ...(this.#lease ?? this.#newLease()), spec }, signal)
    return true
  }

  /** undefined in `#lease`: there is none. */
  async #read(signal: AbortSignal): Promise<void> {
    const { api, namespace, name, clock } = this.#options
    try {
      this.#lease = await api.request<Lease>('GET', `${leases(namespace)}/${name}`, { signal })
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) throw error
      this.#lease = undefined
    }
    if (this.#lease?.spec) this.#observation.see(this.#lease.spec, clock.monotonic())
  }

  async #write(lease: Lease, signal: AbortSignal): Promise<void> {
    const { api, namespace, name, clock } = this.#options
    const exists = lease.metadata.resourceVersion !== undefined
    const path = exists ? `${leases(namespace)}/${name}` : leases(namespace)
    this.#lease = await api.request<Lease>(exists ? 'PUT' : 'POST', path, { body: lease, signal })
    if (this.#lease.spec) this.#observation.see(this.#lease.spec, clock.monotonic())
  }

  #newLease(): Lease {
    const { namespace, name } = this.#options
    return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, namespace } }
  }

  #names() {
    const { namespace, name } = this.#options
    return { lease: `${namespace}/${name}` }
  }
}

function leases(namespace: string): string {
  return `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`
}
