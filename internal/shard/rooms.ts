/**
 * How full the logs of the shards are that run here: both are looked at every 10 s, and somebody is told once when
 * one is nearly full, again only after it had room meanwhile.
 */
import type { Clock } from '../runtime/clock.ts'
import type { Broker } from './broker.ts'
import type { Room, RoomTelemetry } from './ports.ts'

/** Between two looks at one log, ms. */
const LOOK_EVERY_MS = 10_000
/** Shares of `max_bytes`: above the first a log is nearly full, below the second it has room again. */
const NEARLY_FULL = 0.8
const ROOMY = 0.7

export interface RoomsOptions {
  readonly broker: Pick<Broker, 'inbox' | 'journal'>
  readonly clock: Clock
  readonly telemetry: RoomTelemetry
}

/** The logs of one shard. */
interface Looked {
  /** When they were last asked for, monotonic ms. */
  at: number
  rooms: readonly Room[]
  readonly nearlyFull: Set<Room['log']>
}

export class Rooms {
  readonly #options: RoomsOptions
  readonly #shards = new Map<number, Looked>()

  constructor(options: RoomsOptions) {
    this.#options = options
  }

  /** To be called each second with the shards that run here: asks for what is not known or too old. */
  look(running: ReadonlySet<number>): void {
    const now = this.#options.clock.monotonic()
    for (const shard of this.#shards.keys()) if (!running.has(shard)) this.#shards.delete(shard)
    for (const shard of running) {
      const looked = this.#shards.get(shard) ?? {
        at: Number.NEGATIVE_INFINITY,
        rooms: [],
        nearlyFull: new Set(),
      }
      this.#shards.set(shard, looked)
      if (looked.at + LOOK_EVERY_MS > now) continue
      looked.at = now
      void this.#ask(shard, looked)
    }
    this.#options.telemetry.rooms([...this.#shards.values()].flatMap(({ rooms }) => rooms))
  }

  /** `max_bytes` of the inbox; undefined while it is not known, or not limited. */
  inboxBytes(shard: number): number | undefined {
    const inbox = this.#shards.get(shard)?.rooms.find(({ log }) => log === 'inbox')
    return inbox !== undefined && inbox.maxBytes > 0 ? inbox.maxBytes : undefined
  }

  async #ask(shard: number, looked: Looked): Promise<void> {
    const { broker } = this.#options
    try {
      const [inbox, journal] = await Promise.all([broker.inbox(shard).state(), broker.journal(shard).state()])
      looked.rooms = [
        { shard, log: 'inbox', bytes: inbox.bytes, maxBytes: inbox.maxBytes },
        { shard, log: 'journal', bytes: journal.bytes, maxBytes: journal.maxBytes },
      ]
    } catch {
      // A broker that does not answer is told of by whoever needs it for more than a look.
      return
    }
    for (const room of looked.rooms) this.#judge(room, looked.nearlyFull)
  }

  #judge(room: Room, nearlyFull: Set<Room['log']>): void {
    const { telemetry } = this.#options
    const share = room.maxBytes > 0 ? room.bytes / room.maxBytes : 0
    if (share > NEARLY_FULL && !nearlyFull.has(room.log)) {
      nearlyFull.add(room.log)
      telemetry.nearlyFull(room)
    } else if (share < ROOMY && nearlyFull.delete(room.log)) telemetry.roomy(room)
  }
}
