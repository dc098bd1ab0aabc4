/** The whole service as a process of its own, as `npm start` runs it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

import { freePort } from '../../internal/embedded/port.ts'
import { eventually } from './eventually.ts'
import { natsBinary } from './servers.ts'

const ROOT = join(import.meta.dirname, '..', '..')
/** A first start makes a database cluster, on a machine that may be busy; ms. */
const START_MS = 60_000

export interface Service {
  readonly url: string
  readonly opsUrl: string
  /** The process that was spawned; npm itself when started by `npm start`. */
  readonly child: ChildProcess
  /** Everything it has written so far, both streams. */
  output(): string
  /** Exit code, or the signal that ended it. */
  exited(): Promise<number | string>
}

export interface ServiceOptions {
  dataDir: string
  env?: Record<string, string>
  /** Through `npm start` instead of node itself. */
  npm?: boolean
}

/** Resolves as soon as the process runs; see `untilHealthy`. It does not outlive this one. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const [port, opsPort] = [await freePort(), await freePort()]
  const [command, args] = options.npm ? ['npm', ['start']] : [process.execPath, ['cmd/penstock/main.ts']]
  const child = spawn(command, args as string[], {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      NATS_SERVER_BIN: await natsBinary(),
      PENSTOCK_DATA_DIR: options.dataDir,
      PENSTOCK_PORT: String(port),
      PENSTOCK_OPS_PORT: String(opsPort),
      ...options.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
  return service(child, `http://127.0.0.1:${port}`, `http://127.0.0.1:${opsPort}`)
}

function service(child: ChildProcess, url: string, opsUrl: string): Service {
  const chunks: Buffer[] = []
  for (const stream of [child.stdout!, child.stderr!])
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  const closed = once(child, 'close')
  const output = () => Buffer.concat(chunks).toString('utf8')
  return { url, opsUrl, child, output, exited: () => closed.then(([code, signal]) => code ?? signal) }
}

/** Resolves when `GET /health` answers 200; rejects with its output when the process ends before. */
export async function untilHealthy(service: Service): Promise<void> {
  const healthy = eventually(async () => (await fetch(`${service.url}/health`)).status === 200, {
    timeoutMs: START_MS,
  })
  const ended = service.exited().then((code) => {
    throw new Error(`the service ended with ${code}:\n${service.output()}`)
  })
  await Promise.race([healthy, ended])
}
