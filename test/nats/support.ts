/** One connection and broker over the streams of an account that nobody else uses. */
import { createBroker, type NatsBroker } from '../../internal/nats/broker.ts'
import { type Connection, connectBroker } from '../../internal/nats/connection.ts'
import { ensureStreams } from '../../internal/nats/streams/streams.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { LogMessage } from '../../internal/shard/broker.ts'

/** Small enough for many test files on one server, bytes a shard. */
export const STORE_BYTES_PER_SHARD = 256 * 1024 * 1024

export interface TestBroker {
  connection: Connection
  broker: NatsBroker
  warnings: string[]
  close(): Promise<void>
}

export async function connectTo(url: string): Promise<{ connection: Connection; warnings: string[] }> {
  const warnings: string[] = []
  const report = { connection: () => {}, warning: (text: string) => warnings.push(text) }
  return { connection: await connectBroker({ servers: [url] }, 1, report), warnings }
}

/** Streams made when absent, and a broker over them. */
export async function brokerAt(
  url: string,
  shards = 1,
  storeBytes = shards * STORE_BYTES_PER_SHARD,
): Promise<TestBroker> {
  const { connection, warnings } = await connectTo(url)
  const clock = systemClock()
  await ensureStreams(connection, { clock, shards, replicas: 1, storeBytes })
  const broker = createBroker(connection, { clock })
  return {
    connection,
    broker,
    warnings,
    async close() {
      broker.close()
      await connection.close()
    },
  }
}

/** What a reading hands over, to be waited for. */
export class Received {
  readonly messages: LogMessage[] = []
  readonly errors: Error[] = []
  readonly handler = (batch: LogMessage[]): void => {
    this.messages.push(...batch)
  }
  readonly onError = (error: Error): void => {
    this.errors.push(error)
  }

  get sequences(): number[] {
    return this.messages.map(({ seq }) => seq)
  }
}
