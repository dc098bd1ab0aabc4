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

  /** null: it may be claimed; else the boot that may still own it. Rejects when the journal cannot be read. */
  async ownerOf(shard: number): Promise<string | null> {
    const last = await this.#options.broker.journal(shard).last()
    if (last === undefined) return null
    const owner = this.#lastOwner(shard, last.data)
    if (owner !== null) return owner
    this.#unlisted.delete(shard)
    return null
  }

  #lastOwner(shard: number, data: Uint8Array): string | null {
    try {
      const { boot, records } = decodeCommit(data)
      return records.at(-1)?.type === 'release' || this.#isOver(shard, boot) ? null : boot
    } catch (error) {
      if (!(error instanceof CorruptBytesError)) throw error
      return this.#lister(shard)
    }
  }

  /**
   * Of a shard whose last commit cannot be read: a node of a newer version may have written it and live. When no
   * lease has listed the shard for a TTL it is claimed all the same: that fails, with what all failures of shards
   * have, back-off and a line in `/health`.
   */
  #lister(shard: number): string | null {
    const { boot, membership } = this.#options
    const lease = membership.leases().find((each) => each.boot !== boot && each.shards.includes(shard))
    if (lease === undefined) return this.#unlistedForLong(shard, UNKNOWN) ? null : UNKNOWN
    this.#unlisted.delete(shard)
    return lease.boot
  }

  #isOver(shard: number, owner: string): boolean {
    const { boot, membership, isOver } = this.#options
    if (owner === boot || isOver(owner) || membership.isGone(owner)) return true
    const lease = membership.leases().find((each) => each.boot === owner)
    if (lease !== undefined && !lease.shards.includes(shard)) return this.#unlistedForLong(shard, owner)
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
