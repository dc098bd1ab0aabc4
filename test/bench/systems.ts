/** What is measured: Penstock as `npm start` runs it, and the floor and the hand-written service beside it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { freePort } from '../../internal/embedded/port.ts'
import { eventually } from '../support/eventually.ts'
import { natsBinary, ownNats } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'
import { cpuOf } from './processes.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const START_MS = 60_000

export interface System {
  readonly name: string
  readonly ingestUrl: string
  readonly headers: Record<string, string>
  /** CPU ms of all its processes so far, by kind: app, nats, postgres. */
  cpu(): Map<string, number>
  stop(): Promise<void>
}

/** `floor` or `hand`, over a NATS of its own. `sync` as PENSTOCK_SYNC. */
export async function startRival(name: 'floor' | 'hand', sync: string): Promise<System> {
  const nats = await ownNats({ sync })
  const port = await freePort()
  const app = launch([`test/bench/${name}/${name}.ts`], { PORT: String(port), NATS_URL: nats.url })
  const ingestUrl = `http://127.0.0.1:${port}/`
  await eventually(() => fetch(ingestUrl, { method: 'POST', body: '{"key":"first"}' }), {
    timeoutMs: START_MS,
  })
  return {
    name,
    ingestUrl,
    headers: {},
    cpu: () => new Map([...cpuOf(app.pid!), ...cpuOf(nats.pid)]),
    stop: async () => {
      await ended(app, 'SIGTERM')
      await nats.stop()
    },
  }
}

export interface BufferSettings {
  bufferId: string
  batch: { idleTimeoutMs: number; maxWaitFromFirstMs: number; maxItems?: number }
  deliverTo: string
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
  urlOf(bufferId: string): string
}

export interface PenstockOptions {
  sync: string
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
  const child = launch([...(options.nodeOptions ?? []), 'cmd/penstock/main.ts'], {
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
    ...{ name: 'penstock', child, headers, urlOf, url, as, dataDir },
    ingestUrl: urlOf('items'),
    opsUrl: `http://127.0.0.1:${opsPort}`,
    createBuffer: (settings) => create(`${url}/v1/admin/buffers`, headers, bufferOf(settings)),
    cpu: () => cpuOf(child.pid!),
    stop: () => ended(child, 'SIGTERM'),
  }
}

function newKey(): string {
  return `svk_${randomBytes(24).toString('hex')}`
}

function bufferOf({ bufferId, batch, deliverTo }: BufferSettings): object {
  return {
    ...{ bufferId, batch, projectId: 'bench', name: bufferId },
    groupKey: { mode: 'jsonpath', path: '$.key' },
    delivery: { url: deliverTo },
  }
}

async function create(url: string, headers: Record<string, string>, body: object): Promise<void> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (answer.status !== 201) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`)
}

function launch(args: string[], env: Record<string, string>): ChildProcess {
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const kill = () => child.kill('SIGKILL')
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
