/** How full the logs of this node's shards are, as gauges, and one line when one of them is nearly full. */
import type { Meter } from '@opentelemetry/api'
import type { Room, RoomTelemetry } from '../shard/ports.ts'
import type { Logger } from './logger.ts'

const NAMES: [name: string, description: string, member: 'bytes' | 'maxBytes'][] = [
  ['penstock_log_bytes', 'Bytes that a shard’s inbox or journal takes at the broker', 'bytes'],
  ['penstock_log_max_bytes', 'Bytes that a shard’s inbox or journal may take at the broker', 'maxBytes'],
]

export function createRoomTelemetry(log: Logger, meter: Meter): RoomTelemetry {
  const latest = new Map<string, Room>()
  for (const [name, description, member] of NAMES) {
    meter.createObservableGauge(name, { description }).addCallback((result) => {
      for (const room of latest.values()) result.observe(room[member], { shard: room.shard, log: room.log })
    })
  }
  return {
    rooms(rooms) {
      // OpenTelemetry repeats what it was told of a label once: a log that went to another node must show as empty.
      for (const [key, { shard, log }] of latest) latest.set(key, { shard, log, bytes: 0, maxBytes: 0 })
      for (const room of rooms) latest.set(`${room.log} ${room.shard}`, room)
    },
    nearlyFull(room) {
      log.warn(room, 'a log is nearly full')
    },
    roomy(room) {
      log.info(room, 'a log has room again')
    },
  }
}
