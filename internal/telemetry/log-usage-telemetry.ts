/** How full the logs of this node's shards are, as gauges, and one line when one of them is nearly full. */
import type { Meter } from '@opentelemetry/api'
import type { LogUsage, LogUsageTelemetry } from '../shard/ports.ts'
import type { Logger } from './logger.ts'

const NAMES: [name: string, description: string, member: 'bytes' | 'maxBytes'][] = [
  ['penstock_log_bytes', 'Bytes that a shard’s inbox, journal or archive takes at the broker', 'bytes'],
  [
    'penstock_log_max_bytes',
    'Bytes that a shard’s inbox, journal or archive may take at the broker',
    'maxBytes',
  ],
]

export function createLogUsageTelemetry(log: Logger, meter: Meter): LogUsageTelemetry {
  const latest = new Map<string, LogUsage>()
  for (const [name, description, member] of NAMES) {
    meter.createObservableGauge(name, { description }).addCallback((result) => {
      for (const usage of latest.values())
        result.observe(usage[member], { shard: usage.shard, log: usage.log })
    })
  }
  return {
    usage(usages) {
      // OpenTelemetry repeats what it was told of a label once: a log that went to another node must show as empty.
      for (const [key, { shard, log }] of latest) latest.set(key, { shard, log, bytes: 0, maxBytes: 0 })
      for (const usage of usages) latest.set(`${usage.log} ${usage.shard}`, usage)
    },
    nearlyFull(usage) {
      log.warn(usage, 'a log is nearly full')
    },
    hasSpace(usage) {
      log.info(usage, 'a log has room again')
    },
  }
}
