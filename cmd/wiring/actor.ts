/** The actor role: shards and their deliveries. */
import type { Meter } from '@opentelemetry/api'
import type { DeliveryClient } from '../../internal/delivery/client.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { createDeletedBuffers } from '../../internal/postgres/deleted-buffers.ts'
import { createProjection } from '../../internal/postgres/projection.ts'
import { systemRandomness } from '../../internal/runtime/system-clock.ts'
import { HOUSEKEEPING_LIMITS, type HousekeepingLimits } from '../../internal/shard/housekeeping/limits.ts'
import type { Membership } from '../../internal/shard/ownership/membership.ts'
import { ActorNode } from '../../internal/shard/ownership/node.ts'
import {
  createShardTable,
  type ShardTable,
  type ShardTableOptions,
} from '../../internal/shard/status/shard-table.ts'
import { SharePublisher } from '../../internal/shard/status/shares.ts'
import { createLogUsageTelemetry } from '../../internal/telemetry/log-usage-telemetry.ts'
import { createShardTelemetry } from '../../internal/telemetry/shard-telemetry.ts'
import { syncLagMs } from '../config/sync.ts'
import type { Logs, Node, Store } from './foundation.ts'

/** Payloads kept in memory over all shards of a node, bytes. */
export const PAYLOAD_BUDGET = 256 * 1024 * 1024
/** Four times the longest wait that a buffer has by default. */
const PAYLOAD_MS = 60_000
const ATTEMPTS_PER_BUFFER = 64
const FACTS_AT_ONCE = 5_000
/** An attempt that runs at SIGTERM may take its 10 s; the rest of the drain needs some too. */
const DRAIN_MS = 11_500

/** What `GET /shards` of the ops port shows. */
export function createTable(
  { boot, clock }: Node,
  { broker, shards }: Logs,
  membership: Membership,
  supervisors: ShardTableOptions['supervisors'],
): () => Promise<ShardTable> {
  return createShardTable({ boot, clock, broker, shards, membership, supervisors })
}

export async function startActor(
  node: Node,
  store: Store,
  logs: Logs,
  meter: Meter,
  deliveries: DeliveryClient,
  nodes: { leases: Membership; isOver: (boot: string) => boolean },
  housekeeping: Omit<HousekeepingLimits, 'syncLagMs'> = HOUSEKEEPING_LIMITS,
): Promise<ActorNode> {
  const { config, lifecycle, clock, log, boot, watched } = node
  const actor = await lifecycle.acquire(
    'shards',
    async () => {
      const actor = new ActorNode({
        boot,
        clock,
        broker: logs.broker,
        shards: logs.shards,
        randomness: systemRandomness(),
        membership: nodes.leases,
        isOver: nodes.isOver,
        policies: store.buffers,
        deliverer: deliveries,
        deadLetters: createDeadLetters(store.db),
        deletedBuffers: createDeletedBuffers(store.db, { shards: logs.shards }),
        projection: createProjection(store.db),
        telemetry: createShardTelemetry(log, meter, watched),
        limits: {
          payloadBudget: PAYLOAD_BUDGET / logs.shards,
          payloadMs: PAYLOAD_MS,
          attemptsPerBuffer: ATTEMPTS_PER_BUFFER,
          factsAtOnce: FACTS_AT_ONCE,
          housekeeping: { ...housekeeping, syncLagMs: syncLagMs(config.sync) },
        },
      })
      await actor.start()
      return actor
    },
    (it) => it.stop(DRAIN_MS),
  )
  await lifecycle.acquire(
    'share reports',
    () => {
      const running = () => actor.running()
      const telemetry = createLogUsageTelemetry(log, meter)
      const publisher = new SharePublisher({ clock, running, telemetry, broker: logs.broker })
      publisher.start()
      return publisher
    },
    (it) => it.stop(),
  )
  return actor
}
