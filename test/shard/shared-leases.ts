/** Leases of several nodes in one process: what the adapter does over the broker, without its delays. */
import type { Lease, Membership } from '../../internal/shard/ownership/membership.ts'

export class SharedLeases {
  readonly #leases = new Map<string, Lease>()
  readonly #cut = new Set<string>()
  readonly #expired = new Map<string, Lease>()
  readonly #listeners = new Set<() => void>()

  /** The membership that a node sees. */
  join(boot: string, shards: number): Membership {
    this.#leases.set(boot, {
      boot,
      role: 'actor',
      node: boot,
      shards: [],
      accepting: true,
      version: '0',
      since: 0,
      installation: { shards, serializer: 1 },
    })
    const { leases, cut, listeners } = { leases: this.#leases, cut: this.#cut, listeners: this.#listeners }
    const tell = () => this.#tell()
    queueMicrotask(tell)
    return {
      leases: () => [...leases.values()].sort((a, b) => (a.boot < b.boot ? -1 : 1)),
      isGone: (other) => !leases.has(other),
      get held() {
        return !cut.has(boot)
      },
      ttlMs: 500,
      announce(change) {
        const own = leases.get(boot)
        if (own === undefined || cut.has(boot)) return
        leases.set(boot, { ...own, ...change })
        queueMicrotask(tell)
      },
      onChange(listener) {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }
  }

  /** The node no longer renews its lease, and knows it; the others do not yet. */
  cut(boot: string): void {
    this.#cut.add(boot)
    this.#tell()
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

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }
}
