/** The last values that each shard of this node reported, by shard; of one that is let go, zeros. */
import type { Meter } from '@opentelemetry/api'
import type { ShardTelemetry } from '../shard/ports.ts'

type Gauges = Parameters<ShardTelemetry['gauges']>[0]

const NAMES: [name: string, description: string, member: keyof Gauges][] = [
  ['penstock_shard_epoch', 'Epoch under which this node owns the shard', 'epoch'],
  ['penstock_open_groups', 'Groups with buffered items', 'openGroups'],
  ['penstock_buffered_items', 'Items accepted and not settled', 'bufferedItems'],
  ['penstock_buffered_bytes', 'Payload bytes accepted and not settled', 'bufferedBytes'],
  ['penstock_resident_bytes', 'Payload bytes held in memory', 'residentBytes'],
]

const NOTHING: Omit<Gauges, 'shard'> = {
  epoch: 0,
  openGroups: 0,
  bufferedItems: 0,
  bufferedBytes: 0,
  residentBytes: 0,
}

export function shardGauges(meter: Meter): { set(event: Gauges): void; forget(shard: number): void } {
  const latest = new Map<number, Gauges>()
  for (const [name, description, member] of NAMES) {
    meter.createObservableGauge(name, { description }).addCallback((result) => {
      for (const [shard, gauges] of latest) result.observe(gauges[member], { shard })
    })
  }
  return {
    set: (event) => {
      latest.set(event.shard, event)
    },
    forget: (shard) => {
      // OpenTelemetry repeats what it was told of a label once: left out, the last values would stand for ever.
      if (latest.has(shard)) latest.set(shard, { ...NOTHING, shard })
    },
  }
}
