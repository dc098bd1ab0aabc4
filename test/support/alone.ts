import type { Lease, Membership } from '../../internal/shard/ownership/membership.ts'

/** A membership of one node that has always been alone. */
export function alone(boot: string, shards = 1): Membership {
  let own: Lease = {
    boot,
    role: 'penstock',
    node: 'alone',
    shards: [],
    accepting: true,
    webhooks: 'none',
    version: '0',
    since: 0,
    installation: { shards, serializer: 1 },
  }
  return {
    leases: () => [own],
    isGone: (other) => other !== boot,
    held: true,
    lapses: 0,
    ttlMs: 5_000,
    announce: (change) => {
      own = { ...own, ...change }
    },
    onChange: () => () => {},
  }
}
