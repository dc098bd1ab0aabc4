/** Leases of several nodes in one process: what the adapter does over the broker, without its delays. */
import type { Lease, Membership } from '../../internal/shard/ownership/membership.ts'

export class SharedLeases {
  readonly #leases = new Map<string, Lease>()
  readonly #cut = new Set<string>()
  readonly #lapses = new Map<string, number>()
  readonly #expired = new Map<string, Lease>()
  readonly #suspended = new Set<string>()
  readonly #listeners = new Map<() => void, string>()

  /** The membership that a node sees. */
  join(boot: string, shards: number): Membership {
    this.#leases.set(boot, {
      boot,
      role: 'actor',
      node: boot,
      shards: [],
      accepting: true,
      webhooks: 'none',
      version: '0',
      since: 0,
      installation: { shards, serializer: 1 },
    })
    const [leases, cut, suspended] = [this.#leases, this.#cut, this.#suspended]
    const [lapses, listeners] = [this.#lapses, this.#listeners]
    const tell = () => this.#tell()
    queueMicrotask(tell)
    return {
      leases: () => [...leases.values()].sort((a, b) => (a.boot < b.boot ? -1 : 1)),
      isGone: (other) => !leases.has(other),
      get held() {
        return !cut.has(boot) && !suspended.has(boot)
      },
      get lapses() {
        return lapses.get(boot) ?? 0
      },
      ttlMs: 500,
      announce(change) {
        const own = leases.get(boot)
        if (own === undefined || cut.has(boot)) return
        leases.set(boot, { ...own, ...change })
        queueMicrotask(tell)
      },
      onChange(listener) {
        listeners.set(listener, boot)
        return () => listeners.delete(listener)
      },
    }
  }

  /** The node no longer renews its lease, and knows it; the others do not yet. */
  cut(boot: string): void {
    this.#cut.add(boot)
    this.#lapsed(boot)
    this.#tell()
  }

  /** Its machine is suspended: its lease runs out, and it hears of nothing. */
  suspend(boot: string): void {
    this.#suspended.add(boot)
    this.expire(boot)
  }

  /** Its machine goes on, and its lease is renewed before anything else has run there. */
  resume(boot: string): void {
    this.#lapsed(boot)
    this.#suspended.delete(boot)
    this.mend(boot)
  }

  /** It renews its lease again, as it was when that ran out. */
  mend(boot: string): void {
    this.#cut.delete(boot)
    const expired = this.#expired.get(boot)
    if (expired) this.#leases.set(boot, expired)
    this.#tell()
  }

  /** Its lease has run out. */
  expire(boot: string): void {
    const lease = this.#leases.get(boot)
    if (lease) this.#expired.set(boot, lease)
    this.#leases.delete(boot)
    this.#tell()
  }

  #lapsed(boot: string): void {
    this.#lapses.set(boot, (this.#lapses.get(boot) ?? 0) + 1)
  }

  #tell(): void {
    for (const [listener, boot] of this.#listeners) if (!this.#suspended.has(boot)) listener()
  }
}
