/** What a broker's sync of each append adds to it. */
import { type JetStreamClient, StorageType } from 'nats'
import { type NatsAccess, natsConnection } from '../../test/support/servers.ts'
import { median } from '../figures.ts'

const STREAM = 'sync-time'
/** Bytes, of a pack. */
const SIZE = 16_384
const APPENDS = 200

/** ms: an append at a broker that syncs minus one at a broker that does not, nothing else going on; medians. */
export async function syncMsOf(syncing: NatsAccess, relaxed: NatsAccess): Promise<number> {
  return (await appendMs(syncing)) - (await appendMs(relaxed))
}

async function appendMs(to: NatsAccess): Promise<number> {
  const connection = await natsConnection(to)
  const { streams } = await connection.jetstreamManager()
  await streams.add({ name: STREAM, subjects: [STREAM], storage: StorageType.File })
  const client = connection.jetstream()
  await appendTimes(client)
  const middle = median(await appendTimes(client))
  await streams.delete(STREAM)
  await connection.close()
  return middle
}

/** One after the other. */
async function appendTimes(client: JetStreamClient): Promise<number[]> {
  const payload = Buffer.alloc(SIZE, 1)
  const times: number[] = []
  for (let n = 0; n < APPENDS; n++) {
    const from = performance.now()
    await client.publish(STREAM, payload)
    times.push(performance.now() - from)
  }
  return times
}
