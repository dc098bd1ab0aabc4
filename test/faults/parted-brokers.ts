/**
 * NATS servers of a cluster that reach each other through proxies: one of them can be cut off from its peers while clients still reach
 * it. Clients reach each server directly.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'nats'

import { freePort } from '../../internal/embedded/port.ts'
import { eventually } from '../support/eventually.ts'
import { endWithRun, natsBinary } from '../support/servers.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { tempFolder } from '../support/temp-folders.ts'
import type { Brokers } from './brokers.ts'

const USER = 'penstock'
const STORE_BYTES = 8 * 1024 ** 3
const START_MS = 60_000
/** Nobody listens there. Peers name it to each other, and so use no way around the proxies. */
const NOWHERE = '127.0.0.1:1'

export interface PartedBrokers extends Brokers {
  /** No byte passes between this server and its peers until `heal`. */
  cutOff(name: string): void
  heal(): void
}

interface Member {
  readonly name: string
  readonly client: number
  readonly peers: number
  /** In front of the other members, by their names, for this one alone. */
  readonly ways: Map<string, TcpProxy>
}

export async function partedBrokers(size = 3): Promise<PartedBrokers> {
  const members: Member[] = []
  for (let number = 1; number <= size; number++) {
    const ports = { client: await freePort(), peers: await freePort() }
    members.push({ name: `nats-${number}`, ...ports, ways: new Map() })
  }
  for (const from of members)
    for (const to of members) if (from !== to) from.ways.set(to.name, await TcpProxy.to(to.peers))
  const password = randomBytes(18).toString('base64url')
  const servers = await Promise.all(members.map((member) => launch(member, password)))
  await Promise.all(members.map(({ client }) => untilReady(client, password)))
  return {
    brokers: members.map(({ name }, index) => asBroker(name, servers[index]!)),
    natsUrls: members.map(({ client }) => `nats://${USER}:${password}@127.0.0.1:${client}`),
    natsPort: undefined,
    cutOff(name) {
      for (const { name: from, ways } of members)
        for (const [to, proxy] of ways) if (from === name || to === name) proxy.blackhole()
    },
    heal() {
      for (const { ways } of members) for (const proxy of ways.values()) proxy.heal()
    },
    async stop() {
      await Promise.all(servers.map((server) => server.stop()))
      for (const { ways } of members) for (const proxy of ways.values()) await proxy.close()
    },
  }
}

async function launch(member: Member, password: string) {
  const dir = tempFolder(member.name)
  mkdirSync(join(dir, 'store'))
  const config = join(dir, 'nats.conf')
  writeFileSync(config, configuration(member, dir, password), { mode: 0o600 })
  const child = spawn(await natsBinary(), ['-c', config], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  return endWithRun({
    child,
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  })
}

function configuration({ name, client, peers, ways }: Member, dir: string, password: string): string {
  const user = JSON.stringify({ user: USER, password })
  const routes = [...ways.values()].map((way) =>
    JSON.stringify(`nats://${USER}:${password}@127.0.0.1:${way.port}`),
  )
  return `server_name: ${name}
listen: "127.0.0.1:${client}"
max_payload: ${8 * 1024 * 1024}
jetstream {
  store_dir: ${JSON.stringify(join(dir, 'store'))}
  max_file_store: ${STORE_BYTES}
  max_memory_store: ${64 * 1024 * 1024}
}
accounts { ${USER}: { jetstream: enabled, users: [ ${user} ] } }
cluster {
  name: penstock
  listen: "127.0.0.1:${peers}"
  advertise: ${JSON.stringify(NOWHERE)}
  no_advertise: true
  authorization: ${user}
  routes: [ ${routes.join(', ')} ]
}
`
}

async function untilReady(port: number, pass: string): Promise<void> {
  await eventually(
    async () => {
      const servers = `127.0.0.1:${port}`
      const connection = await connect({ servers, user: USER, pass, reconnect: false, timeout: 2_000 })
      try {
        await (await connection.jetstreamManager({ timeout: 2_000 })).getAccountInfo()
      } finally {
        await connection.close()
      }
    },
    { timeoutMs: START_MS, everyMs: 100 },
  )
}

/** A trial knows it by its name, and cuts it off instead. */
function asBroker(name: string, { child }: { child: ChildProcess }): Brokers['brokers'][number] {
  const refuse = () => {
    throw new Error(`${name} can only be cut off`)
  }
  return {
    name,
    get running() {
      return child.exitCode === null && child.signalCode === null
    },
    kill: refuse,
    restart: refuse,
  }
}
