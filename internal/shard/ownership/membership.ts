/**
 * The nodes of the installation, as their leases tell (docs/architecture/protocol.md, "Membership"). Membership only
 * decides who tries: the journal decides who owns.
 */

export type NodeRole = 'actor' | 'ingress' | 'admin' | 'penstock'

/**
 * Whether a node takes webhooks. `ending`: it is about to stop, and waits for the verdicts on what it has stored
 * (docs/architecture/protocol.md, "Duplicates and verdicts").
 */
export type Webhooks = 'taken' | 'ending' | 'none'

export interface Lease {
  /** UUID of the process run: never the name of a pod. */
  readonly boot: string
  readonly role: NodeRole
  /** For people: host name or pod. */
  readonly node: string
  /** Shards that it runs, ascending; none unless it is an actor. */
  readonly shards: readonly number[]
  /** Whether it takes shards; false once it is about to stop. */
  readonly accepting: boolean
  /** `none` of nodes that have not said yet, and of versions that do not say. */
  readonly webhooks: Webhooks
  readonly installation: { readonly shards: number; readonly serializer: number }
  /** Of the program. */
  readonly version: string
  /** Of its first lease, Unix ms. */
  readonly since: number
}

export interface Membership {
  /**
   * Every lease that stands, the own one included while it does, in the order of boots. One that nobody here can
   * read stands with the role `admin`, without shards.
   */
  leases(): Lease[]
  /**
   * Certain that this boot holds no lease: it was released, or not heard of for longer than the TTL; the latter
   * never before TTL + 1 s after the bucket was created or the own watch began, or began anew after a gap. The
   * first question about a boot that was never seen is answered with false, until the watch is known to have
   * passed the moment of the question: `onChange` tells.
   */
  isGone(boot: string): boolean
  /** The own lease surely stands: its last confirmed renewal began less than the TTL minus a margin ago. */
  readonly held: boolean
  /** How often `held` became false. Two looks may both find it true with a lapse in between. */
  readonly lapses: number
  /** How long a lease stands without renewal, ms. */
  readonly ttlMs: number
  /** What the own lease says from now on; written at once, coalesced, one write in flight. */
  announce(change: { shards?: readonly number[]; accepting?: boolean; webhooks?: Webhooks }): void
  /** After a change of leases (no mere renewal), or of `held`. Returns the unsubscriber. */
  onChange(listener: () => void): () => void
}
