/** Reads the logs of an installation past the service: what is still open in them, and who wrote into them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { idempotencyKey } from '../../internal/domain/group.ts'
import { decodePack } from '../../internal/domain/pack.ts'
import { createBroker, type NatsBroker } from '../../internal/nats/broker.ts'
import { type Connection, connectBroker } from '../../internal/nats/connection.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { decodeCommit } from '../../internal/shard/journal/codec.ts'
import type { JournalRecord } from '../../internal/shard/journal/records.ts'
import { isOver } from '../../internal/shard/journal/state.ts'
import { storedState } from '../shard/stored-state.ts'
import type { StoredCommit } from './history.ts'

export class StoredLogs {
  readonly #connection: Connection
  readonly #broker: NatsBroker
  readonly #shards: readonly number[]

  private constructor(connection: Connection, shards: number) {
    this.#connection = connection
    this.#broker = createBroker(connection, { clock: systemClock() })
    this.#shards = Array.from({ length: shards }, (_, shard) => shard)
  }

  static async open(natsUrl: string, shards: number): Promise<StoredLogs> {
    const ignore = { connection: () => {}, warning: () => {} }
    return new StoredLogs(await connectBroker({ servers: [natsUrl] }, 1, ignore), shards)
  }

  /** Items that are stored and that no record names as over. Rejects when the logs cannot be read. */
  async openItems(): Promise<number> {
    const counts = await Promise.all(this.#shards.map((shard) => this.#openItemsOf(shard)))
    return counts.reduce((sum, count) => sum + count, 0)
  }

  /** Items that live in the journals: keeps carried them there. */
  async keptItems(): Promise<number> {
    const states = await Promise.all(this.#shards.map((shard) => storedState(this.#broker, shard)))
    return states.reduce((sum, { kept }) => sum + kept.size, 0)
  }

  /** What the journals still hold, in order. */
  async commits(): Promise<StoredCommit[]> {
    const commits: StoredCommit[] = []
    for (const shard of this.#shards) {
      const journal = this.#broker.journal(shard)
      const { firstSeq, lastSeq } = await journal.state()
      for await (const { seq, at, data } of journal.range(firstSeq, lastSeq)) {
        const { boot, epoch, records } = decodeCommit(data)
        commits.push({
          shard,
          seq,
          at,
          boot,
          epoch,
          records: records.map(({ type }) => type),
          settled: records.flatMap(settledBy),
        })
      }
    }
    return commits
  }

  async close(): Promise<void> {
    this.#broker.close()
    await this.#connection.close()
  }

  async #openItemsOf(shard: number): Promise<number> {
    const inbox = this.#broker.inbox(shard)
    // The inbox first: what comes later is judged by the next look.
    const { firstSeq, lastSeq } = await inbox.state()
    const state = await storedState(this.#broker, shard)
    let open = state.kept.size
    for await (const { seq, data } of inbox.range(Math.max(firstSeq, state.horizon), lastSeq)) {
      decodePack(data, (_, index) => {
        if (!state.kept.has(seq, index) && !isOver(state, { seq, index })) open++
      })
    }
    return open
  }
}

function settledBy(record: JournalRecord): string[] {
  const settles = record.type === 'done' || record.type === 'dead'
  return settles ? [idempotencyKey(record.groupId, record.version)] : []
}

/** Of the NATS that a service runs in its data folder. */
export function embeddedNatsUrl(dataDir: string): string {
  const [password, port] = ['password', 'port'].map((file) =>
    readFileSync(join(dataDir, 'nats', file), 'utf8').trim(),
  )
  return `nats://penstock:${password}@127.0.0.1:${port}`
}
