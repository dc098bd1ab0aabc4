/**
 * The whole service as a process of its own, as `npm start` runs it. `startService` is one run; an
 * `Installation` is a data folder (or the run's shared servers) over all the runs on it, with a client.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import { Api } from './api.ts'
import { eventually } from './eventually.ts'
import { readMetrics } from './metrics.ts'
import { NodeLogs } from './node-logs.ts'
import { freshDatabase, natsAccount, natsBinary } from './servers.ts'
import { nodesOf, opsUrlsOf } from './service-nodes.ts'
import { SHARDS, shapeSettings } from './shape.ts'
import { tempFolder } from './temp-folders.ts'

const ROOT = join(import.meta.dirname, '..', '..')
/** A first start makes a database cluster, on a machine that may be busy; ms. */
const START_MS = 120_000

export interface Service {
  /** Base address, known once the process has said where it listens; throws before. */
  readonly url: string
  readonly opsUrl: string
  /** The process that was spawned; npm itself when started by `npm start`. */
  readonly child: ChildProcess
  /** Everything it has written so far, both streams. */
  output(): string
  /** Its log so far, in order. */
  readonly events: readonly LogEvent[]
  /** Exit code, or the signal that ended it. */
  exited(): Promise<number | string>
}

export interface ServiceOptions {
  dataDir: string
  /** Ports are any free ones unless it names them. */
  env?: Record<string, string>
  /** Through `npm start` instead of node itself. */
  npm?: boolean
  /** Another program than the service's own, from the root of the repository. */
  program?: string
  /** Options of node. */
  flags?: readonly string[]
}

/** Resolves as soon as the process runs; see `untilHealthy`. It does not outlive this one. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const program = options.program ?? 'cmd/penstock/main.ts'
  const [command, args] = options.npm
    ? ['npm', ['start']]
    : [process.execPath, [...(options.flags ?? []), program]]
  const child = spawn(command, args as string[], {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      NATS_SERVER_BIN: await natsBinary(),
      PENSTOCK_DATA_DIR: options.dataDir,
      PENSTOCK_PORT: '0',
      PENSTOCK_OPS_PORT: '0',
      ...(options.program === undefined && shapeSettings),
      ...options.env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const kill = () => killAll(child, options.dataDir)
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
  return service(child)
}

/** The first one before the others, or it would start them again. */
function killAll(child: ChildProcess, dataDir: string): void {
  child.kill('SIGKILL')
  for (const pid of nodesOf(dataDir)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It ended by itself meanwhile.
    }
  }
}

function service(child: ChildProcess): Service {
  const chunks: Buffer[] = []
  const events: LogEvent[] = []
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    createInterface({ input: stream }).on('line', (line) => events.push(...parseEvent(line)))
  }
  const closed = once(child, 'close')
  const output = () => Buffer.concat(chunks).toString('utf8')
  const addresses = new Map<string, string>()
  const said = (before: string): string => {
    const address = addresses.get(before) ?? new RegExp(`${before} (\\S+)`).exec(output())?.[1]
    if (address === undefined) throw new Error(`the service has not said where it listens:\n${output()}`)
    addresses.set(before, address)
    return address
  }
  return {
    get url() {
      return said('Penstock listens on')
    },
    get opsUrl() {
      return said('metrics\\) on')
    },
    child,
    output,
    events,
    exited: () => closed.then(([code, signal]) => code ?? signal),
  }
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

/** One line of the service's log. `msg` names the event: flush, delivery, dead, dropped, ownership … */
export interface LogEvent extends Record<string, unknown> {
  level: string
  msg: string
}

export interface InstallationOptions {
  /** Added to the process's environment. */
  env?: Record<string, string>
  /** On the run's shared NATS and Postgres (quick); default: on embedded servers, which end with the process. */
  shared?: boolean
  /** Customers that exist from the start, each with an owner key and PENSTOCK_INITIAL_CREDITS. Default `e2e`. */
  customers?: string[]
  program?: string
  /** Default: a temporary folder. */
  dataDir?: string
}

/** A new installation; nothing runs before `start`. */
export async function createInstallation(options: InstallationOptions = {}): Promise<Installation> {
  const keys = new Map((options.customers ?? ['e2e']).map((customerId) => [customerId, newKey()]))
  const servers: Record<string, string> = options.shared
    ? {
        PENSTOCK_NATS_URL: (await natsAccount()).url,
        PENSTOCK_DATABASE_URL: await freshDatabase(),
        // Nobody cuts the power of these servers.
        PENSTOCK_SYNC: 'always',
        PENSTOCK_SHARDS: String(SHARDS),
      }
    : {}
  const env = {
    PENSTOCK_LOG_LEVEL: 'debug',
    PENSTOCK_OWNER_KEYS: [...keys].map((pair) => pair.join('=')).join(','),
    ...servers,
    ...options.env,
  }
  return new Installation(options.dataDir ?? tempFolder('data'), env, keys, options.program)
}

/** `svk_` and 48 hexadecimal characters. */
function newKey(): string {
  return `svk_${randomBytes(24).toString('hex')}`
}

export class Installation {
  readonly dataDir: string
  readonly #env: Record<string, string>
  readonly #keys: Map<string, string>
  readonly #program: string | undefined
  readonly #runs: Service[] = []
  readonly #nodeLogs: NodeLogs<LogEvent>

  constructor(dataDir: string, env: Record<string, string>, keys: Map<string, string>, program?: string) {
    this.dataDir = dataDir
    this.#env = env
    this.#keys = keys
    this.#program = program
    this.#nodeLogs = new NodeLogs(dataDir, parseEvent)
  }

  /** The latest run; throws before the first. */
  get service(): Service {
    const latest = this.#runs.at(-1)
    if (!latest) throw new Error('the service was never started')
    return latest
  }

  /** As the owner of a customer, over all runs: it follows the address of the latest. Default: the first one. */
  api(customerId?: string): Api {
    const [id, key] = customerId ? [customerId, this.#keys.get(customerId)] : [...this.#keys][0]!
    if (key === undefined) throw new Error(`customer ${id} is none of this installation`)
    return new Api(() => this.service.url, key, id)
  }

  /** Runs the service and resolves when it is healthy. */
  async start(env: Record<string, string> = {}): Promise<Service> {
    const run = await this.spawn(env)
    await untilHealthy(run)
    return run
  }

  /** Runs the service and resolves as soon as its process is there. */
  async spawn(env: Record<string, string> = {}): Promise<Service> {
    const program = this.#program === undefined ? {} : { program: this.#program }
    const run = await startService({ dataDir: this.dataDir, env: { ...this.#env, ...env }, ...program })
    this.#runs.push(run)
    return run
  }

  /**
   * Ends the running process with `signal` (default SIGTERM); its exit code or signal, null when none runs. A SIGKILL takes
   * all processes of the service at once, as the end of their container does.
   */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string | null> {
    const latest = this.#runs.at(-1)
    if (!latest || latest.child.exitCode !== null || latest.child.signalCode !== null) return null
    if (signal === 'SIGKILL') this.kill()
    else latest.child.kill(signal)
    return latest.exited()
  }

  /** SIGKILL of all processes of the service; its embedded servers are left behind. */
  kill(): void {
    killAll(this.service.child, this.dataDir)
  }

  /** What all runs have written, with the processes that they started. */
  output(): string {
    return [...this.#runs.map((run) => run.output()), ...this.#nodeLogs.lines()].join('\n')
  }

  /**
   * Log lines of all runs and of the processes that they started, or only those of one event and with these fields. Levels
   * below info included; those of one process in their order.
   */
  events(msg?: string, fields: Record<string, unknown> = {}): LogEvent[] {
    return [...this.#runs.flatMap((run) => run.events), ...this.#nodeLogs.events()].filter(
      (event) =>
        (msg === undefined || event.msg === msg) &&
        Object.entries(fields).every(([name, value]) => event[name] === value),
    )
  }

  /** A metric of the latest run summed over all its processes, and over all samples that carry `labels`; 0 when there is none. */
  async metric(name: string, labels: Record<string, string> = {}): Promise<number> {
    const each = opsUrlsOf(this.service, this.dataDir).map(async (url) =>
      readMetrics(await (await fetch(new URL('/metrics', url))).text(), name, labels),
    )
    return (await Promise.all(each)).reduce((sum, one) => sum + one, 0)
  }
}

function parseEvent(line: string): LogEvent[] {
  if (!line.startsWith('{')) return []
  try {
    return [JSON.parse(line)]
  } catch {
    // The last line of a process that was killed.
    return []
  }
}
