/**
 * What shards report, as wide log events with stable names and as metrics. Flushes and most successful
 * deliveries are told at `debug` (`analytics.sampleDeliveryLogs` picks the ones at `info`); what fails is
 * always told. Where somebody watches, `everyDelivery` is told at `info`.
 */
import type { Meter } from '@opentelemetry/api'
import type { PauseReason } from '../domain/model.ts'
import type { ShardTelemetry } from '../shard/ports.ts'
import { counter, distribution, latency } from './counter.ts'
import type { Logger } from './logger.ts'
import { shardGauges } from './shard-gauges.ts'

/** States after which the shard is no longer this node's. */
const ENDS = new Set(['released', 'fenced', 'failed', 'abandoned'])
/** Shown from the start: a series that is not there yet raises no alert. */
const PAUSES: readonly PauseReason[] = ['consecutive_dead_letters']
const SIZE_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000]

export function createShardTelemetry(log: Logger, meter: Meter, everyDelivery = false): ShardTelemetry {
  const gauges = shardGauges(meter)
  const owner = ownerEvents(log, meter)
  return {
    ...batchEvents(log, meter, everyDelivery),
    ...owner,
    gauges: gauges.set,
    ownership(event) {
      if (ENDS.has(event.state)) gauges.forget(event.shard)
      owner.ownership(event)
    },
  }
}

type BatchEvents = Pick<ShardTelemetry, 'flush' | 'delivery' | 'dead' | 'paused' | 'discarded' | 'dropped'>

function batchEvents(log: Logger, meter: Meter, everyDelivery: boolean): BatchEvents {
  const flushes = counter(meter, 'penstock_flushes', 'Batches sealed', 'reason')
  const batchItems = distribution(meter, 'penstock_batch_items', 'Items of a sealed batch', SIZE_BOUNDS)
  const lateness = latency(meter, 'penstock_flush_lateness', 'How long after its due time a batch was sealed')
  const deliveries = counter(meter, 'penstock_deliveries', 'Delivery attempts', 'outcome')
  const failures = counter(meter, 'penstock_delivery_failures', 'Failed delivery attempts', 'class')
  const duration = latency(meter, 'penstock_delivery_duration', 'Duration of a delivery attempt')
  const dead = counter(meter, 'penstock_dead_letters', 'Batches put into the dead letter queue', 'reason')
  const pauses = counter(meter, 'penstock_buffer_pauses', 'Buffers that the service disabled', 'reason')
  for (const reason of PAUSES) pauses.add(0, reason)
  const discarded = counter(
    meter,
    'penstock_discarded_items',
    'Items discarded with a deleted, disabled buffer',
  )
  const duplicates = counter(meter, 'penstock_duplicates', 'Items dropped as duplicates')
  return {
    flush(event) {
      flushes.add(1, event.reason)
      batchItems.record(event.items)
      lateness.record(Math.max(0, event.latenessMs))
      log.debug(event, 'flush')
    },
    delivery(event) {
      deliveries.add(1, event.outcome)
      duration.record(event.durationMs)
      if (event.errorClass !== null) failures.add(1, event.errorClass)
      if (event.outcome !== 'delivered') log.warn(event, 'delivery')
      else if (event.sampled || everyDelivery) log.info(event, 'delivery')
      else log.debug(event, 'delivery')
    },
    dead(event) {
      dead.add(1, event.reason)
      log.warn(event, 'dead')
    },
    paused(event) {
      pauses.add(1, event.reason)
      log.warn(event, 'buffer paused')
    },
    discarded(event) {
      discarded.add(event.items)
      log.warn(event, 'discarded')
    },
    dropped(event) {
      duplicates.add(event.duplicates)
      log.debug(event, 'dropped')
    },
  }
}

type OwnerEvents = Pick<ShardTelemetry, 'ownership' | 'commit' | 'problem'>

function ownerEvents(log: Logger, meter: Meter): OwnerEvents {
  const changes = counter(
    meter,
    'penstock_ownership_changes',
    'Changes of a shard’s state on this node',
    'state',
  )
  const replay = latency(meter, 'penstock_replay_duration', 'Take-over of a shard, from claim to serving')
  const append = latency(meter, 'penstock_journal_append_duration', 'Round trip of a journal commit')
  const records = distribution(
    meter,
    'penstock_journal_commit_records',
    'Records of a journal commit',
    SIZE_BOUNDS,
  )
  const bytes = counter(meter, 'penstock_journal_bytes', 'Bytes committed to journals')
  const problems = counter(meter, 'penstock_problems', 'Broken expectations reported by shards')
  return {
    ownership(event) {
      changes.add(1, event.state)
      if (event.replayMs !== undefined) replay.record(event.replayMs)
      if (event.error === undefined) log.info(event, 'ownership')
      else log.error(event, 'ownership')
    },
    commit(event) {
      append.record(event.ms)
      records.record(event.records)
      bytes.add(event.bytes)
    },
    problem(event) {
      problems.add(1)
      log.error(event, 'problem')
    },
  }
}
