/**
 * Whether a shard may be claimed (docs/architecture/protocol.md, "Claims"): when it was released, or its owner holds
 * no lease or has not listed the shard for a TTL. Two views of the membership then never make two nodes claim in
 * turns.
 */
import type { Clock } from '../../runtime/clock.ts'
import type { Broker } from '../broker.ts'
import { CorruptBytesError } from '../journal/bytes.ts'
import { decodeCommit } from '../journal/codec.ts'
import type { Membership } from './membership.ts'

/** Stands for the owner where the journal's last commit cannot be read. */
const UNKNOWN = 'unknown'

export interface ClaimsOptions {
  readonly boot: string
  readonly broker: Pick<Broker, 'journal'>
  readonly clock: Clock
  readonly membership: Membership
  /** Runs of this program that are over for certain, whatever their leases say. */
  readonly isOver: (boot: string) => boolean
}

export class Claims {
  readonly #options: ClaimsOptions
  /** Since when a shard's owner has a lease that does not list it, monotonic ms. */
  readonly #unlisted = new Map<number, { owner: string; since: number }>()

  constructor(options: ClaimsOptions) {
    this.#options = options
  }

  /** Rejects when the journal cannot be read. */
  async mayClaim(shard: number): Promise<boolean> {
    const last = await this.#options.broker.journal(shard).last()
    const owner = last === undefined ? null : ownerBy(last.data)
    const may = owner === null || this.#hasLeft(shard, owner)
    if (may) this.#unlisted.delete(shard)
    return may
  }

  /**
   * A last commit that cannot be read may be of a newer version, and of any node that lives. When no lease has listed the shard for a
   * TTL it is claimed all the same: that fails, with what all failures of shards have, back-off and a line in `/health`.
   */
  #hasLeft(shard: number, owner: string): boolean {
    const { boot, membership, isOver } = this.#options
    const isKnown = owner !== UNKNOWN
    if (isKnown && (owner === boot || isOver(owner) || membership.isGone(owner))) return true
    const leases = membership
      .leases()
      .filter((lease) => (isKnown ? lease.boot === owner : lease.boot !== boot))
    const isListed = leases.some(({ shards }) => shards.includes(shard))
    // A known owner without a lease is not yet gone for certain.
    if (!isListed && (!isKnown || leases.length > 0)) return this.#unlistedForLong(shard, owner)
    this.#unlisted.delete(shard)
    return false
  }

  #unlistedForLong(shard: number, owner: string): boolean {
    const { clock, membership } = this.#options
    const known = this.#unlisted.get(shard)
    if (known?.owner !== owner) {
      this.#unlisted.set(shard, { owner, since: clock.monotonic() })
      return false
    }
    return clock.monotonic() - known.since >= membership.ttlMs
  }
}

/** Of the journal's last commit; null: it was released. */
function ownerBy(data: Uint8Array): string | null {
  try {
    const { boot, records } = decodeCommit(data)
    return records.at(-1)?.type === 'release' ? null : boot
  } catch (error) {
    if (error instanceof CorruptBytesError) return UNKNOWN
    throw error
  }
}
