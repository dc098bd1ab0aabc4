/** BullMQ: ingest alone, for batches a key are in its paid edition. */
import { listen } from './front.ts'
import { packageOf } from './packages.ts'

interface Queue {
  add(name: string, data: unknown, options: object): Promise<unknown>
  waitUntilReady(): Promise<unknown>
}

const { Queue } = packageOf<{ Queue: new (name: string, options: object) => Queue }>('bullmq')
const connection = { host: '127.0.0.1', port: Number(process.env.REDIS_PORT) }
const queue = new Queue('items', { connection })
await queue.waitUntilReady()
listen((item) => queue.add('item', item, { removeOnComplete: true }))
