/**
 * The making of logs on a cluster of brokers, by one node at a time (docs/architecture/protocol.md, "Logs"). A stream that only
 * one of them can make is the lock, and tells how much room there is: it is made as large as all logs that are missing, and then
 * lowered. So no log is made larger than it fits beside the others. A server that restarts within about a minute makes each
 * stream once more as it was made at first, beside the others as they are now. NATS before 2.14.3 deletes the Raft log of a stream
 * for which there is no room then (nats-server, pull request 8262).
 */
import { randomUUID } from 'node:crypto'
import { DiscardPolicy, type JetStreamManager, StorageType, type StreamConfig, type StreamInfo } from 'nats'
import type { Clock } from '../../runtime/clock.ts'
import { messageOf } from '../../runtime/thrown.ts'
import { UnusableBrokerError } from '../connection.ts'
import { STREAM_NOT_FOUND } from './stream-api.ts'
import { addStream, codeOf, lookUp, mayPass, NAME_IN_USE, tooLarge, UnsettledError } from './stream-lookup.ts'

/** A node makes all logs well within this; one that ended meanwhile has left its stream, ms. */
const MAKING_MS = 45_000
/** Of the lock while the logs are made, bytes. */
const LEAST_BYTES = 1_000_000
const HOLDER_KEY = 'penstock.room'

export interface RoomOptions {
  readonly clock: Clock
  readonly replicas: number
  /** In front of the stream's name and subject; default empty. */
  readonly prefix?: string
}

export class Room {
  readonly #manager: JetStreamManager
  readonly #options: RoomOptions

  constructor(manager: JetStreamManager, options: RoomOptions) {
    this.#manager = manager
    this.#options = options
  }

  get #name(): string {
    return `${this.#options.prefix ?? ''}PENSTOCK-ROOM`
  }

  /**
   * Takes the lock when there is room for so many bytes on each server; else answers the broker's words. Rejects with
   * UnsettledError while another node has it, and with UnusableBrokerError when the stream is somebody else's.
   */
  async take(bytes: number): Promise<string | undefined> {
    try {
      await addStream(this.#manager, this.#options.clock, this.#config(Math.max(bytes, LEAST_BYTES)))
      if (bytes > LEAST_BYTES) await this.#lower()
      return undefined
    } catch (cause) {
      const code = codeOf(cause)
      if (code === NAME_IN_USE) throw await this.#held()
      if (code !== undefined && tooLarge.has(code)) return messageOf(cause)
      if (code === undefined || mayPass(cause)) throw cause
      throw new UnusableBrokerError(`stream ${this.#name} cannot be created: ${messageOf(cause)}`, { cause })
    }
  }

  async #lower(): Promise<void> {
    try {
      await this.#manager.streams.update(this.#name, { max_bytes: LEAST_BYTES })
    } catch (cause) {
      // Else the next attempt of this node, too, would wait for whoever has the lock.
      await this.release().catch(() => {})
      throw cause
    }
  }

  async release(): Promise<void> {
    await this.#manager.streams.delete(this.#name).catch((cause: unknown) => {
      if (codeOf(cause) !== STREAM_NOT_FOUND) throw cause
    })
  }

  /** What a node does whose lock another one has. One that was left behind is removed. */
  async #held(): Promise<Error> {
    const info = await lookUp(this.#manager, this.#options.clock, this.#name)
    if (info !== undefined && info.config.metadata?.[HOLDER_KEY] === undefined)
      return new UnusableBrokerError(`stream ${this.#name} is not of Penstock: remove or rename it`)
    if (info !== undefined && ageOf(info) > MAKING_MS) await this.release()
    return new UnsettledError('another node makes the logs')
  }

  #config(bytes: number): Partial<StreamConfig> & { name: string } {
    const { replicas, prefix = '' } = this.#options
    return {
      name: this.#name,
      subjects: [`${prefix}penstock-room`],
      storage: StorageType.File,
      discard: DiscardPolicy.New,
      max_bytes: bytes,
      num_replicas: replicas,
      // Equal settings would not be refused: each node would take the stream for its own.
      metadata: { [HOLDER_KEY]: randomUUID() },
    }
  }
}

/** By the clock of the broker, ms. */
function ageOf(info: StreamInfo & { ts?: string }): number {
  return info.ts === undefined ? 0 : Date.parse(info.ts) - Date.parse(info.created)
}
