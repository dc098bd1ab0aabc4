/**
 * Whether a cluster of brokers has room for all logs at once: one stream of their sum is made and removed. So no log is
 * made larger than it fits beside the others. A server that restarts within about a minute makes each stream once more as
 * it was made at first, beside the others as they are now. NATS before 2.14.3 deletes the Raft log of a stream for which
 * there is no room then (nats-server, pull request 8262).
 */
import { randomUUID } from 'node:crypto'
import { DiscardPolicy, type JetStreamManager, StorageType, type StreamConfig } from 'nats'
import type { Clock } from '../../runtime/clock.ts'
import { messageOf } from '../../runtime/thrown.ts'
import { STREAM_NOT_FOUND } from './stream-api.ts'
import { addStream, codeOf, mayPass, NAME_IN_USE, pause, tooLarge } from './stream-lookup.ts'

/** Another node that looks has its answer well within this; one that ended meanwhile has left its stream, ms. */
const OTHERS_LOOK_MS = 10_000

export interface RoomOptions {
  readonly clock: Clock
  readonly replicas: number
  /** In front of the stream's name and subject; default empty. */
  readonly prefix?: string
}

/** The broker's words when it has no room for so many bytes on each server; undefined: it has, or does not tell. */
export async function refusalOfRoom(
  manager: JetStreamManager,
  options: RoomOptions,
  bytes: number,
): Promise<string | undefined> {
  const { clock } = options
  const config = roomStream(options, bytes)
  const deadline = clock.monotonic() + OTHERS_LOOK_MS
  for (;;) {
    try {
      await addStream(manager, clock, config)
      await remove(manager, config.name)
      return undefined
    } catch (cause) {
      const code = codeOf(cause)
      if (code !== undefined && tooLarge.has(code)) return messageOf(cause)
      if (code === undefined || mayPass(cause)) throw cause
      // An account may refuse one stream of that size, or one more stream: then the logs are asked for one by one.
      if (code !== NAME_IN_USE) return undefined
    }
    if (clock.monotonic() > deadline) await remove(manager, config.name)
    await pause(clock)
  }
}

function roomStream(
  { replicas, prefix = '' }: RoomOptions,
  bytes: number,
): Partial<StreamConfig> & { name: string } {
  return {
    name: `${prefix}ROOM`,
    subjects: [`${prefix}room`],
    storage: StorageType.File,
    discard: DiscardPolicy.New,
    max_bytes: bytes,
    num_replicas: replicas,
    // Nobody takes that of another node for the own one: equal settings would not be refused.
    metadata: { 'penstock.room': randomUUID() },
  }
}

async function remove(manager: JetStreamManager, name: string): Promise<void> {
  await manager.streams.delete(name).catch((cause: unknown) => {
    if (codeOf(cause) !== STREAM_NOT_FOUND) throw cause
  })
}
