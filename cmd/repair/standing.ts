/** Whether somebody may own the shard: a repair beside an owner would work against it. */

import type { Connection } from '../../internal/nats/connection.ts'
import { standingLeases } from '../../internal/nats/leases/standing-leases.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { sleep } from '../../internal/runtime/sleep.ts'
import type { Broker } from '../../internal/shard/broker.ts'
import type { Lease } from '../../internal/shard/ownership/membership.ts'
import { surveyShard } from '../../internal/shard/status/survey.ts'

/** After a restart of the broker leases need so long to stand again, ms. */
const COME_BACK_MS = 6_000

/** Rejects, in one line that names the node, when a lease lists one of the shards, or its last owner still has one. */
export async function refuseOwned(
  connection: Connection,
  broker: Pick<Broker, 'inbox' | 'journal' | 'archive'>,
  clock: Clock,
  shards: readonly number[],
): Promise<void> {
  const { bucketAgeMs = 0 } = await standingLeases(connection, clock)
  if (bucketAgeMs < COME_BACK_MS) await sleep(clock, COME_BACK_MS - bucketAgeMs)
  const { leases } = await standingLeases(connection, clock)
  for (const shard of shards) {
    const { owner, listedBy } = await surveyShard(broker, shard, leases)
    const holder = listedBy[0] ?? (owner && !owner.released ? owner.lease : undefined)
    if (holder !== undefined) throw inHands(shard, holder)
  }
}

function inHands(shard: number, holder: Lease): Error {
  return new Error(
    `shard ${shard} is in the hands of ${holder.node} (boot ${holder.boot}): stop the nodes that run shards first, ingress may go on`,
  )
}
