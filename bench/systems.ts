/** What is measured: Penstock as `npm start` runs it, and the floor and the hand-written service beside it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { freePort } from '../internal/embedded/port.ts'
import { eventually } from '../test/support/eventually.ts'
import { natsBinary, ownNats } from '../test/support/servers.ts'
import { tempFolder } from '../test/support/temp-folders.ts'
import { cpuOf, killTree } from './processes.ts'

const ROOT = join(import.meta.dirname, '..')
const START_MS = 60_000

export interface System {
  readonly name: string
  readonly ingestUrl: string
  readonly headers: Record<string, string>
  /** Pids of the trees of its processes. */
  readonly roots: readonly number[]
  /** CPU ms of all its processes so far, by kind: app, nats, postgres. */
  cpu(): Map<string, number>
  stop(): Promise<void>
}

const RIVALS = { floor: 'floor/floor.ts', 'floor, parsing': 'floor/parsing.ts', hand: 'hand/hand.ts' }

/** A program over a NATS of its own. `sync` as PENSTOCK_SYNC. */
export async function startRival(
  name: keyof typeof RIVALS,
  sync: string,
  env: Record<string, string> = {},
): Promise<System> {
  const nats = await ownNats({ sync })
  return serve(name, [process.execPath, `bench/${RIVALS[name]}`], nats, {
    NATS_URL: nats.url,
    ...env,
  })
}

/** A program that takes items at `/` of its PORT, over a store of its own that ends after it. */
export async function serve(
  name: string,
  command: readonly [string, ...string[]],
  store: { pid: number; stop(): Promise<void> },
  env: Record<string, string>,
): Promise<System> {
  const port = await freePort()
  const app = run(command, { PORT: String(port), ...env })
  const ingestUrl = `http://127.0.0.1:${port}/`
  await Promise.race([
    eventually(() => fetch(ingestUrl, { method: 'POST', body: '{"key":"first"}' }), { timeoutMs: START_MS }),
    once(app, 'exit').then(([code]) => Promise.reject(new Error(`${name} ended with ${code}`))),
  ])
  return {
    name,
    ingestUrl,
    headers: {},
    roots: [app.pid!, store.pid],
    cpu: () => new Map([...cpuOf(app.pid!), ...cpuOf(store.pid)]),
    stop: async () => {
      await ended(app, 'SIGTERM')
      await store.stop()
    },
  }
}

/** Webhooks and deliveries are signed with it. */
export const SECRET = 'a secret of the benchmark'

export interface Batching {
  idleTimeoutMs: number
  maxWaitFromFirstMs: number
  maxItems?: number
  maxBytes?: number
}

export interface BufferSettings {
  bufferId: string
  batch: Batching
  deliverTo: string
  /** Set: webhooks must be signed with it, and deliveries are. */
  secret?: string
}

export interface Penstock extends System {
  readonly child: ChildProcess
  /** Base address. */
  readonly url: string
  readonly opsUrl: string
  readonly dataDir: string
  /** Headers of the owner of a customer. */
  as(customerId: string): Record<string, string>
  createBuffer(settings: BufferSettings): Promise<void>
  changeBuffer(bufferId: string, batch: Batching): Promise<void>
  disableBuffer(bufferId: string): Promise<void>
  urlOf(bufferId: string): string
}

export interface PenstockOptions {
  sync: string
  /** Folder of another checkout, whose program is run. Default: this one. */
  checkout?: string
  /** Options of node, in front of the program. */
  nodeOptions?: string[]
  env?: Record<string, string>
  /** Customers besides `bench`. */
  customers?: string[]
}

/** A new instance on an empty data folder, with one project of the customer `bench` and no buffer. */
export async function startPenstock(options: PenstockOptions): Promise<Penstock> {
  const keys = new Map(['bench', ...(options.customers ?? [])].map((id) => [id, newKey()]))
  const dataDir = join(tempFolder('bench'), 'data')
  const [port, opsPort] = [await freePort(), await freePort()]
  const url = `http://127.0.0.1:${port}`
  const program = join(options.checkout ?? ROOT, 'cmd/penstock/main.ts')
  const child = launch([...(options.nodeOptions ?? []), program], {
    NATS_SERVER_BIN: await natsBinary(),
    PENSTOCK_DATA_DIR: dataDir,
    PENSTOCK_PORT: String(port),
    PENSTOCK_OPS_PORT: String(opsPort),
    PENSTOCK_SYNC: options.sync,
    PENSTOCK_OWNER_KEYS: [...keys].map((pair) => pair.join('=')).join(','),
    PENSTOCK_INITIAL_CREDITS: '1000000000',
    ...options.env,
  })
  await eventually(async () => (await fetch(`${url}/health`)).status === 200, { timeoutMs: START_MS })
  const as = (customerId: string) => ({ 'X-API-Key': keys.get(customerId)! })
  const headers = as('bench')
  await create(`${url}/v1/admin/projects`, headers, { projectId: 'bench', name: 'Bench' })
  const urlOf = (bufferId: string) => `${url}/v1/ingest/bench/${bufferId}`
  return {
    name: 'penstock',
    child,
    headers,
    urlOf,
    url,
    as,
    dataDir,
    ingestUrl: urlOf('items'),
    opsUrl: `http://127.0.0.1:${opsPort}`,
    roots: [child.pid!],
    createBuffer: (settings) => create(`${url}/v1/admin/buffers`, headers, bufferOf(settings)),
    changeBuffer: (bufferId, batch) =>
      asked('PATCH', `${url}/v1/admin/buffers/${bufferId}`, headers, { batch }, 200),
    disableBuffer: (bufferId) =>
      asked('PATCH', `${url}/v1/admin/buffers/${bufferId}`, headers, { enabled: false }, 200),
    cpu: () => cpuOf(child.pid!),
    stop: () => ended(child, 'SIGTERM'),
  }
}

function newKey(): string {
  return `svk_${randomBytes(24).toString('hex')}`
}

function bufferOf({ bufferId, batch, deliverTo, secret }: BufferSettings): object {
  return {
    bufferId,
    batch,
    projectId: 'bench',
    name: bufferId,
    overflow: { maxGroupItems: Math.max(2_000, batch.maxItems ?? 0) },
    groupKey: { mode: 'jsonpath', path: '$.key' },
    delivery: { url: deliverTo, ...(secret !== undefined && { signing: { type: 'hmac-sha256', secret } }) },
    ...(secret !== undefined && { sourceVerification: { enabled: true, signingSecret: secret } }),
  }
}

function create(url: string, headers: Record<string, string>, body: object): Promise<void> {
  return asked('POST', url, headers, body, 201)
}

async function asked(
  method: string,
  url: string,
  headers: Record<string, string>,
  body: object,
  status: number,
): Promise<void> {
  const answer = await fetch(url, {
    method,
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (answer.status !== status) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`)
}

function launch(args: string[], env: Record<string, string>): ChildProcess {
  return run([process.execPath, ...args], env)
}

/** A program that is killed with this process at the latest, and its servers with it. */
export function run(
  [program, ...args]: readonly [string, ...string[]],
  env: Record<string, string>,
): ChildProcess {
  const child = spawn(program, args, {
    cwd: ROOT,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const kill = () => child.pid !== undefined && killTree(child.pid)
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
  return child
}

/** Signals the process and resolves when it is gone. */
export async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill(signal)
  await gone
}
