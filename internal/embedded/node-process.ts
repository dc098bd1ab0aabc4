/**
 * A node of the installation as a child process of another program. Its variables stand in a 0600 file that its
 * command line names: so whoever ran it can start it again with the same words, and what a killed parent left
 * behind is recognised.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { EmbeddedServer } from './embedded-server.ts'
import { startLog } from './log-file.ts'
import { keptPort, newPort } from './port.ts'
import { type EmbeddedLog, EmbeddedStartError } from './ports.ts'
import { ServerExitedError, untilReady } from './readiness.ts'
import { ServerProcess, type StopStep, stopOrphans } from './server-process.ts'

/** A node drains within 14 s. */
const STOPPING: StopStep[] = [{ signal: 'SIGTERM', waitMs: 14_500 }]

export interface NodeOptions {
  /** Such as `actor-1`. */
  name: string
  /** Path of its program. */
  program: string
  /** Words behind it. */
  args?: readonly string[]
  /** Folder for its variables, ports, id and log, all under its name; see `stopLeftNodes`. */
  dir: string
  /** Its `PENSTOCK_*` variables but for the ports; the caller's own do not reach it. */
  settings: Readonly<Record<string, string>>
  /** Of HTTP. 0: any free one, kept over restarts; undefined: it has none. */
  port: number | undefined
  /** 0: any free one, kept over restarts. */
  opsPort: number
  log: EmbeddedLog
  /** Gives a start up that is under way. */
  signal?: AbortSignal | undefined
}

export interface NodeProcess {
  readonly name: string
  /** undefined: it listens on the ops port alone. */
  readonly url: string | undefined
  readonly opsUrl: string
  readonly logFile: string
  readonly pid: number
  readonly running: boolean
  /** How the process that runs now ends: see ServerProcess. */
  readonly exited: Promise<string>
  /** What starts it again, as words of a command line. */
  readonly command: readonly string[]
  kill(signal: NodeJS.Signals): void
  /** Drains it; SIGKILL after 14.5 s. Resolves when it is gone. */
  stop(): Promise<void>
  /** Restarts it whenever it dies; `onLost` when that does not help. */
  keepRunning(onLost: (error: Error) => void): void
}

interface Ports {
  http: number | undefined
  ops: number
}

/** Resolves when `/ready` answers 200. Rejects with EmbeddedStartError: one line with what the node said. */
export async function startNode(options: NodeOptions): Promise<NodeProcess> {
  const { name, dir, log } = options
  const file = (ending: string) => join(dir, `${name}.${ending}`)
  const command = [process.execPath, `--env-file=${file('env')}`, options.program, ...(options.args ?? [])]
  let ports = await choosePorts(options, (file) => keptPort(file, log))
  const launch = () => launchNode(options, command, ports)
  const spec = { name, log, stopping: STOPPING, launch }
  const server = await EmbeddedServer.start(spec).catch(async (error: unknown) => {
    if (!(error instanceof PortTakenError)) throw error
    ports = await choosePorts(options, (file) => newPort(file, log))
    return EmbeddedServer.start(spec)
  })
  const { http, ops } = ports
  const address = (port: number) => addressOf(options, port)
  return {
    name,
    command,
    logFile: file('log'),
    url: http === undefined ? undefined : address(http),
    opsUrl: address(ops),
    get pid() {
      return server.pid
    },
    get running() {
      return server.running
    },
    get exited() {
      return server.exited
    },
    kill: (signal) => server.kill(signal),
    stop: () => server.stop(),
    keepRunning: (onLost) => server.keepRunning(onLost),
  }
}

/** Where the files of the nodes of a data folder are. */
export function nodesFolder(dataDir: string): string {
  return join(dataDir, 'nodes')
}

/** Stops nodes that run from the files of `dir`, whoever started them; their ids. `waitMs`: for their drain. */
export function stopLeftNodes(dir: string, waitMs: number): Promise<number[]> {
  return stopOrphans(`--env-file=${join(dir, '/')}`, [{ signal: 'SIGTERM', waitMs }])
}

/** Somebody else listens on a port that the node wanted. */
class PortTakenError extends EmbeddedStartError {}

async function choosePorts(
  { dir, name, port, opsPort }: NodeOptions,
  choose: (file: string) => Promise<number>,
): Promise<Ports> {
  return {
    http: port === 0 ? await choose(join(dir, `${name}.port`)) : port,
    ops: opsPort === 0 ? await choose(join(dir, `${name}.ops-port`)) : opsPort,
  }
}

async function launchNode(options: NodeOptions, command: string[], ports: Ports): Promise<ServerProcess> {
  const { name, dir, signal } = options
  const logFile = join(dir, `${name}.log`)
  const from = startLog(logFile)
  writeFileSync(join(dir, `${name}.env`), environmentFile(variables(options, ports)), { mode: 0o600 })
  const [program = '', ...args] = command
  const env = withoutOwn(process.env)
  const node = await ServerProcess.launch({ command: program, args, cwd: process.cwd(), env, logFile })
  notePid(join(dir, `${name}.pid`), node)
  const probe = () => askReady(addressOf(options, ports.ops))
  try {
    await untilReady(name, node, probe, { file: logFile, from }, { signal, steps: STOPPING })
    return node
  } catch (error) {
    throw error instanceof ServerExitedError ? told(name, error) : error
  }
}

/** For whoever wants to kill it; gone with it, for ids pass on to others. */
function notePid(file: string, { pid, exited }: ServerProcess): void {
  writeFileSync(file, `${pid}\n`)
  void exited.then(() => rmSync(file, { force: true }))
}

function variables({ settings }: NodeOptions, { http, ops }: Ports): Record<string, string> {
  return {
    ...settings,
    ...(http !== undefined && { PENSTOCK_PORT: String(http) }),
    PENSTOCK_OPS_PORT: String(ops),
  }
}

/** In the grammar of Node's `--env-file`, where no quote can be escaped. Throws for a value with all three. */
function environmentFile(settings: Readonly<Record<string, string>>): string {
  const lines = Object.entries(settings).map(([name, value]) => {
    const quote = ["'", '`', '"'].find((each) => !value.includes(each))
    if (quote === undefined) throw new EmbeddedStartError(`${name}: must not hold all of ' " and \``)
    return `${name}=${quote}${value}${quote}\n`
  })
  return `# Written at every start.\n${lines.join('')}`
}

/** What stands in the environment goes before the file. */
function withoutOwn(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('PENSTOCK_')))
}

function addressOf({ settings }: NodeOptions, port: number): string {
  const host = settings.PENSTOCK_HOST || '127.0.0.1'
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

async function askReady(opsUrl: string): Promise<void> {
  const answer = await fetch(`${opsUrl}/ready`, { signal: AbortSignal.timeout(2_000) })
  const text = await answer.text()
  if (answer.status !== 200) throw new Error(text.trim())
}

/** The line in which a node says why it does not start: a fatal event of its log, or plain text. */
function told(name: string, { text, message }: ServerExitedError): EmbeddedStartError {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const fatal = lines.map(fatalText).findLast((line) => line !== undefined)
  const reason = fatal ?? lines.findLast((line) => !line.startsWith('{'))
  if (reason === undefined) return new EmbeddedStartError(message)
  if (reason.includes('EADDRINUSE')) return new PortTakenError(`${name}: ${reason}`)
  return new EmbeddedStartError(`${name}: ${reason}`)
}

function fatalText(line: string): string | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const { level, msg, err } = JSON.parse(line)
    return level === 'fatal' ? [msg, err?.message].filter(Boolean).join(': ') : undefined
  } catch {
    return undefined
  }
}
