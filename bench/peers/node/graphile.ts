/**
 * Graphile Worker: one job a key whose payload is an array that grows by each item. Its window is the longest wait from
 * the first item; it knows no idle time besides, no count and no bytes.
 */
import { request } from 'undici'
import { type Item, listen } from './front.ts'
import { packageOf } from './packages.ts'

interface Utils {
  migrate(): Promise<void>
  addJob(task: string, payload: unknown, options: object): Promise<unknown>
}
interface Worker {
  makeWorkerUtils(options: object): Promise<Utils>
  run(options: object): Promise<unknown>
}
interface Emitter {
  on(event: 'error', listener: () => void): void
  on(event: 'connect', listener: (client: Emitter) => void): void
}
type Pool = new (options: object) => Emitter

const POOL = 20
const CONCURRENCY = 16
const POLL_MS = 100

const { makeWorkerUtils, run } = packageOf<Worker>('graphile-worker')
const { Pool } = packageOf<{ Pool: Pool }>('pg')
const { DATABASE_URL: connectionString, SINK_URL: sinkUrl = '', MAX_WAIT_MS } = process.env

function pool(): object {
  const connections = new Pool({ connectionString, max: POOL })
  connections.on('error', () => {})
  connections.on('connect', (client) => client.on('error', () => {}))
  return connections
}

async function deliver(items: readonly Item[]): Promise<void> {
  const { statusCode, body } = await request(sinkUrl, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ key: items[0]?.key, items }),
  })
  await body.dump()
  if (statusCode >= 300) throw new Error(`the sink answered ${statusCode}`)
}

const utils = await makeWorkerUtils({ pgPool: pool() })
await utils.migrate()
await run({
  pgPool: pool(),
  concurrency: CONCURRENCY,
  pollInterval: POLL_MS,
  noHandleSignals: true,
  taskList: { deliver },
})
listen((item) => {
  const runAt = new Date(Date.now() + Number(MAX_WAIT_MS))
  const options = { jobKey: item.key, jobKeyMode: 'preserve_run_at', runAt, maxAttempts: 3 }
  return utils.addJob('deliver', [item], options)
})
