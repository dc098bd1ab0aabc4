/**
 * NATS servers in a machine whose power is cut, and others beside it that keep theirs. Together they are one server, or one
 * JetStream cluster. Ports in the machine are those of the host.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type JetStreamManager, type NatsConnection } from 'nats'

import { type NatsServer, startNats } from '../../internal/embedded/nats-server.ts'
import { freePort } from '../../internal/embedded/port.ts'
import { eventually } from '../support/eventually.ts'
import { natsBinary, silent } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'
import type { Cache } from './disk.ts'
import { type Guest, RootFolder } from './guest.ts'
import { HOST_ADDRESS, Machine } from './machine.ts'

const USER = 'penstock'
const DISK_MB = 768
const MEMORY_MB = 256
const MEMORY_OF_SERVER_MB = 160
/** Of a server; without it the runtime of Go takes what a machine has not. */
const HEAP_MB = 120
/** Reserved by the streams of a cluster, as in `internal/embedded`. */
const STORE_BYTES = 8 * 1024 ** 3
/** A first start, on a machine that is emulated and shares its processors, ms. */
const START_MS = 300_000
/** One answer of it, ms. */
const ANSWER_MS = 10_000

export interface NatsMachineOptions {
  readonly guest: Guest
  readonly cache: Cache
  /** See `NatsServerOptions`. */
  readonly sync: string
  /** Servers in the machine. */
  readonly inside: number
  /** Servers of the same cluster that keep their power. */
  readonly beside: number
}

interface Place {
  readonly name: string
  readonly client: number
  readonly peers: number
}

export class NatsMachine {
  readonly machine: Machine
  /** Names of the servers in the machine. */
  readonly inside: readonly string[]
  /** Of all servers. */
  urls: readonly string[] = []
  readonly #options: NatsMachineOptions
  readonly #password: string
  readonly #places: readonly Place[]
  readonly #beside: NatsServer[] = []

  private constructor(
    options: NatsMachineOptions,
    places: readonly Place[],
    machine: Machine,
    password: string,
  ) {
    this.#options = options
    this.#places = places
    this.machine = machine
    this.#password = password
    this.inside = places.slice(0, options.inside).map(({ name }) => name)
  }

  /** Resolves when all of them answer. */
  static async open(options: NatsMachineOptions): Promise<NatsMachine> {
    const size = options.inside + options.beside
    const places: Place[] = []
    for (let number = 1; number <= size; number++) {
      const name = size === 1 ? 'nats' : `nats-${number}`
      places.push({ name, client: await freePort(), peers: await freePort() })
    }
    const password = randomBytes(18).toString('base64url')
    const machine = await openMachine(options, places, password)
    const nats = new NatsMachine(options, places, machine, password)
    machine.start()
    await nats.#startBeside()
    await nats.untilReady()
    return nats
  }

  /** Resolves when JetStream answers in the machine, and no copy of a stream is behind its leader; rejects with the one that is. */
  async untilReady(): Promise<void> {
    const { machine } = this
    await eventually(() => this.#answers(), { timeoutMs: START_MS, everyMs: 200 }).catch((error: unknown) => {
      throw new Error(`${machine.name} is not ready: ${error}\n${machine.output.slice(-4_000)}`, {
        cause: error,
      })
    })
  }

  async close(): Promise<void> {
    await this.machine.close()
    await Promise.all(this.#beside.map((server) => server.stop()))
  }

  /** Alone none of a cluster answers: all at once. */
  async #startBeside(): Promise<void> {
    const { inside, sync } = this.#options
    const ports = this.#places.map(({ peers }) => peers)
    const binary = await natsBinary()
    const starts = this.#places.slice(inside).map(({ name, peers }) =>
      startNats({
        dir: join(tempFolder(name), 'nats'),
        binary,
        log: silent,
        sync,
        name,
        password: this.#password,
        maxStoreBytes: STORE_BYTES,
        cluster: { port: peers, ports },
      }),
    )
    this.#beside.push(...(await Promise.all(starts)))
    const urls = this.#places.slice(0, inside).map(({ client }) => urlOf(client, this.#password))
    this.urls = [...urls, ...this.#beside.map(({ url }) => url)]
  }

  async #answers(): Promise<boolean> {
    if (!this.machine.running) throw new Error('it ended')
    for (const { client } of this.#places.slice(0, this.#options.inside)) {
      const connection = await connect({
        servers: `127.0.0.1:${client}`,
        user: USER,
        pass: this.#password,
        reconnect: false,
        timeout: ANSWER_MS,
      })
      try {
        await checkCopies(connection)
      } finally {
        await connection.close()
      }
    }
    return true
  }
}

/** Rejects with the first stream that has no leader, or a copy that is behind. */
async function checkCopies(connection: NatsConnection): Promise<void> {
  const manager = await connection.jetstreamManager({ timeout: ANSWER_MS })
  await manager.getAccountInfo()
  for await (const { config, cluster } of manager.streams.list()) {
    const copies = cluster?.replicas ?? []
    const behind = copies.find(({ current, offline }) => !current || offline)
    if (behind !== undefined || (copies.length > 0 && !cluster?.leader))
      throw new Error(`${config.name}, led by ${cluster?.leader}: ${JSON.stringify(behind)}`)
  }
}

/** Asks for the lead of every stream to go to this server; it goes soon, or not. */
export async function giveLead(
  connection: NatsConnection,
  manager: JetStreamManager,
  server: string,
): Promise<void> {
  const preference = JSON.stringify({ placement: { preferred: server } })
  for (const stream of await streamNames(manager))
    await connection
      .request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`, preference, { timeout: 5_000 })
      .catch(() => {})
}

async function streamNames(manager: JetStreamManager): Promise<string[]> {
  const names: string[] = []
  for await (const { config } of manager.streams.list()) names.push(config.name)
  return names
}

async function openMachine(
  options: NatsMachineOptions,
  places: readonly Place[],
  password: string,
): Promise<Machine> {
  const inside = places.slice(0, options.inside)
  const servers = inside.map(({ name }) => `/bin/nats-server -c /${name}.conf`)
  const start = [`export GOMEMLIMIT=${HEAP_MB}MiB`, ...servers.slice(1).map((server) => `${server} &`)]
  const root = new RootFolder('nats', [...start, `exec ${servers[0]}`].join('\n'))
  root.copy(await natsBinary(), 'bin/nats-server')
  for (const place of inside) {
    mkdirSync(join(root.path, `store-${place.name}`))
    root.write(`${place.name}.conf`, configuration(options, places, place, password))
  }
  return Machine.open({
    name: inside.length === places.length && inside.length > 1 ? 'nats-all' : inside[0]!.name,
    guest: options.guest,
    image: await root.image(DISK_MB),
    cache: options.cache,
    writesSoon: options.cache === 'torn',
    memoryMb: MEMORY_MB + (inside.length - 1) * MEMORY_OF_SERVER_MB,
    ports: inside.flatMap(({ client, peers }) => (places.length === 1 ? [client] : [client, peers])),
  })
}

function urlOf(port: number, password: string): string {
  return `nats://${USER}:${password}@127.0.0.1:${port}`
}

/** As `internal/embedded` writes it, for any address: a machine has no other clients. */
function configuration(
  options: NatsMachineOptions,
  places: readonly Place[],
  place: Place,
  password: string,
): string {
  const user = JSON.stringify({ user: USER, password })
  return `server_name: ${JSON.stringify(place.name)}
listen: "0.0.0.0:${place.client}"
max_payload: ${8 * 1024 * 1024}
jetstream {
  store_dir: "/store-${place.name}"
  sync_interval: ${JSON.stringify(options.sync)}
  max_file_store: ${places.length === 1 ? 1024 ** 4 : STORE_BYTES}
  max_memory_store: ${64 * 1024 * 1024}
}
accounts { ${JSON.stringify(USER)}: { jetstream: enabled, users: [ ${user} ] } }
${places.length === 1 ? '' : peering(options, places, place, password)}`
}

/** Those beside the machine stand at the host, and reach it there. */
function peering(
  { inside }: NatsMachineOptions,
  places: readonly Place[],
  place: Place,
  password: string,
): string {
  const routes = places.map(({ peers }, index) => {
    const host = index < inside ? '127.0.0.1' : HOST_ADDRESS
    return JSON.stringify(`nats://${USER}:${password}@${host}:${peers}`)
  })
  return `cluster {
  name: penstock
  listen: "0.0.0.0:${place.peers}"
  advertise: "127.0.0.1:${place.peers}"
  no_advertise: true
  authorization: ${JSON.stringify({ user: USER, password })}
  routes: [ ${routes.join(', ')} ]
}
`
}
