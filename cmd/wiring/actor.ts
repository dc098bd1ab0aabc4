/** The actor role: shards and their deliveries. */
import type { Meter } from '@opentelemetry/api'
import { DeliveryClient } from '../../internal/delivery/client.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { createProjection } from '../../internal/postgres/projection.ts'
import { systemRandomness } from '../../internal/runtime/system-clock.ts'
import { HOUSEKEEPING_LIMITS } from '../../internal/shard/housekeeping.ts'
import { ActorNode } from '../../internal/shard/node.ts'
import { createShardTelemetry } from '../../internal/telemetry/shard-telemetry.ts'
import type { Logs, Node, Store } from './foundation.ts'

/** Payloads kept in memory over all shards of a node, bytes. */
const PAYLOAD_BUDGET = 256 * 1024 * 1024
const ATTEMPTS_PER_BUFFER = 64
/** An attempt that runs at SIGTERM may take its 10 s; the rest of the drain needs some too. */
const DRAIN_MS = 10_500

export async function startActor(
  node: Node,
  store: Store,
  logs: Logs,
  meter: Meter,
  version: string,
): Promise<ActorNode> {
  const { lifecycle, clock, config, log, boot } = node
  const delivery = await lifecycle.acquire(
    'deliveries',
    () => new DeliveryClient({ clock, version, allow: config.allowDestinations }),
    (it) => it.close(1_000),
  )
  return lifecycle.acquire(
    'shards',
    async () => {
      const actor = new ActorNode({
        ...{ boot, clock, broker: logs.broker, shards: logs.shards, randomness: systemRandomness() },
        policies: store.buffers,
        deliverer: delivery,
        deadLetters: createDeadLetters(store.db),
        projection: createProjection(store.db),
        telemetry: createShardTelemetry(log, meter),
        limits: {
          payloadBudget: PAYLOAD_BUDGET / logs.shards,
          attemptsPerBuffer: ATTEMPTS_PER_BUFFER,
          housekeeping: HOUSEKEEPING_LIMITS,
        },
      })
      await actor.start()
      return actor
    },
    (it) => it.stop(DRAIN_MS),
  )
}
