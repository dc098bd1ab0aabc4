/**
 * The one connection of a process to NATS: it comes back by itself for as long as the process lives, and it
 * refuses servers that are too old (docs/architecture/protocol.md, "The broker").
 */

import { readFile } from 'node:fs/promises'
import { type ConnectionOptions, connect, credsAuthenticator, Events, type NatsConnection } from 'nats'
import { messageOf } from '../runtime/thrown.ts'

export interface BrokerAddress {
  /** `nats://` or `tls://` URLs or host:port; user and password may stand in the first one. */
  servers: string[]
  user?: string
  password?: string
  /** Path of a `.creds` file. */
  credsFile?: string
  /** Paths; without them the system's authorities are trusted. */
  tls?: { caFile?: string; certFile?: string; keyFile?: string }
}

export interface ConnectionReport {
  /** Connection lost or regained, an address. */
  connection(event: { state: 'disconnected' | 'reconnected'; server: string }): void
  /** Something that works less well than it should; one line. */
  warning(text: string): void
}

/** The server cannot be used; the message is one line for the operator. */
export class UnusableBrokerError extends Error {
  override readonly name = 'UnusableBrokerError'
}

/** Below it an emptied stream could restart its sequence after a kill. */
const leastVersion = [2, 11, 4] as const
/** Below it replicated streams are not to be trusted with compare-and-set under load. */
const leastReplicatedVersion = [2, 12, 0] as const

/** Wait before an address is tried again, ms, plus jitter: a whole fleet reconnects at once otherwise. */
const RECONNECT_WAIT_MS = 100
const RECONNECT_JITTER_MS = 400
/** A silent peer counts as gone after three of these, ms. */
const PING_INTERVAL_MS = 5_000
const PINGS_OUT = 2

export class Connection {
  readonly nats: NatsConnection
  readonly #report: ConnectionReport
  readonly #reconnected = new Set<() => void>()
  readonly #disconnected = new Set<() => void>()
  #connected = true
  #closing = false

  constructor(nats: NatsConnection, report: ConnectionReport) {
    this.nats = nats
    this.#report = report
    void this.#watch()
  }

  /** Whether a server is there, as far as is known. */
  get connected(): boolean {
    return this.#connected && !this.nats.isClosed()
  }

  get serverVersion(): string {
    return this.nats.info?.version ?? '0.0.0'
  }

  /** Largest message that the server takes, headers included, bytes. */
  get maxPayload(): number {
    return this.nats.info?.max_payload ?? 0
  }

  /** After each reconnect; subscriptions are in place again by then. Returns the unsubscriber. */
  onReconnect(listener: () => void): () => void {
    return listening(this.#reconnected, listener)
  }

  /** Each time the connection is lost, for certain. Returns the unsubscriber. */
  onDisconnect(listener: () => void): () => void {
    return listening(this.#disconnected, listener)
  }

  warn(text: string): void {
    this.#report.warning(text)
  }

  /** Sends what is written and closes. */
  async close(): Promise<void> {
    this.#closing = true
    if (this.nats.isClosed()) return
    if (this.connected) await this.nats.flush().catch(() => {})
    await this.nats.close()
  }

  async #watch(): Promise<void> {
    for await (const { type, data } of this.nats.status()) {
      if (type === Events.Disconnect) this.#lost(String(data))
      else if (type === Events.Reconnect) this.#regained(String(data))
      else if (type === Events.Error) this.#report.warning(`broker: ${String(data)}`)
      else if (type === Events.LDM) this.#report.warning(`broker ${String(data)} is about to shut down`)
    }
    if (!this.#closing) this.#report.warning('the connection to the broker ended for good')
    if (this.#connected) this.#lost('closed')
  }

  #lost(server: string): void {
    if (!this.#connected) return
    this.#connected = false
    if (!this.nats.isClosed()) this.#report.connection({ state: 'disconnected', server })
    for (const listener of this.#disconnected) listener()
  }

  #regained(server: string): void {
    this.#connected = true
    this.#report.connection({ state: 'reconnected', server })
    const fault = versionFault(this.serverVersion, 1)
    if (fault) this.#report.warning(fault.text)
    for (const listener of this.#reconnected) listener()
  }
}

function listening(listeners: Set<() => void>, listener: () => void): () => void {
  // A function of its own: the same listener may be given twice.
  const entry = () => listener()
  listeners.add(entry)
  return () => listeners.delete(entry)
}

/**
 * Connects, once. Rejects with UnusableBrokerError for an unreachable or too old server (below 2.11.4).
 * `replicas`: what the streams will have, for the warning below 2.12.
 */
export async function connectBroker(
  address: BrokerAddress,
  replicas: number,
  report: ConnectionReport,
): Promise<Connection> {
  const options = await connectionOptions(address)
  const nats = await connect(options).catch((cause: unknown) => {
    const where = (options.servers as string[]).join(', ')
    throw new UnusableBrokerError(`no NATS server at ${where}: ${messageOf(cause)}`, { cause })
  })
  const fault = versionFault(nats.info?.version ?? '', replicas)
  if (fault?.fatal) {
    await nats.close()
    throw new UnusableBrokerError(fault.text)
  }
  if (fault) report.warning(fault.text)
  return new Connection(nats, report)
}

/** What is wrong with a server version, undefined when nothing is. */
export function versionFault(
  version: string,
  replicas: number,
): { fatal: boolean; text: string } | undefined {
  const parts = /^(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number)
  if (parts === undefined || isBelow(parts, leastVersion)) {
    return {
      fatal: true,
      text: `NATS server ${version || 'of unknown version'} is too old: 2.11.4 is needed`,
    }
  }
  if (replicas > 1 && isBelow(parts, leastReplicatedVersion)) {
    return { fatal: false, text: `NATS server ${version} is old for ${replicas} replicas: use 2.12 or later` }
  }
  return undefined
}

function isBelow(version: readonly number[], least: readonly number[]): boolean {
  for (let i = 0; i < least.length; i++) {
    const difference = (version[i] ?? 0) - (least[i] ?? 0)
    if (difference !== 0) return difference < 0
  }
  return false
}

async function connectionOptions(address: BrokerAddress): Promise<ConnectionOptions> {
  const parsed = address.servers.map(parseServer)
  const user = address.user ?? parsed[0]?.user
  const pass = address.password ?? parsed[0]?.password
  const tls = address.tls ?? (parsed.some((server) => server.tls) ? {} : undefined)
  return {
    servers: parsed.map((server) => server.address),
    name: 'penstock',
    maxReconnectAttempts: -1,
    reconnectDelayHandler: () => RECONNECT_WAIT_MS + Math.floor(Math.random() * RECONNECT_JITTER_MS),
    // Credentials may be replaced under a running process: it keeps trying.
    ignoreAuthErrorAbort: true,
    pingInterval: PING_INTERVAL_MS,
    maxPingOut: PINGS_OUT,
    noAsyncTraces: true,
    ...(user !== undefined && { user }),
    ...(pass !== undefined && { pass }),
    ...(tls !== undefined && { tls }),
    ...(address.credsFile !== undefined && {
      authenticator: credsAuthenticator(await readFile(address.credsFile)),
    }),
  }
}

/** The client takes only host and port; the rest of the URL is ours to read. */
function parseServer(text: string): { address: string; tls: boolean; user?: string; password?: string } {
  const withScheme = text.includes('://') ? text : `nats://${text}`
  let url: URL
  try {
    url = new URL(withScheme)
  } catch (cause) {
    throw new UnusableBrokerError(`not the address of a NATS server: ${withoutCredentials(text)}`, { cause })
  }
  return {
    address: `${url.hostname}:${url.port || '4222'}`,
    tls: url.protocol === 'tls:',
    ...(url.username !== '' && { user: decodeURIComponent(url.username) }),
    ...(url.password !== '' && { password: decodeURIComponent(url.password) }),
  }
}

/** Everything up to the last @: what cannot be parsed may have its password anywhere in there. */
function withoutCredentials(text: string): string {
  const at = text.lastIndexOf('@')
  return at < 0 ? text : `***${text.slice(at)}`
}
