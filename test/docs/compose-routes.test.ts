/** The NATS servers of compose.cluster.yaml, by its own flags, on loopback. */
import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { connect, type NatsConnection } from 'nats'
import { parse } from 'yaml'
import { freePort } from '../../internal/embedded/port.ts'
import { eventually } from '../support/eventually.ts'
import { natsBinary } from '../support/servers.ts'
import { tempFolder } from '../support/temp-folders.ts'

const FILE = join(import.meta.dirname, '..', '..', 'compose.cluster.yaml')
const PASSWORD = 'n'.repeat(48)
const USER = { user: 'penstock', pass: PASSWORD }

describe('the NATS servers of compose.cluster.yaml', function () {
  this.timeout(60_000)
  let ports: number[]
  const servers: ChildProcess[] = []
  const connections: NatsConnection[] = []

  before(async () => {
    ports = await Promise.all(Array.from({ length: 8 }, () => freePort()))
    for (let n = 0; n < 3; n++) await start(flagsOf(n))
  })
  after(async () => {
    for (const each of connections) await each.close()
    for (const server of servers) server.kill('SIGKILL')
  })

  const clients = (n: number) => ports[n]!
  const routes = (n: number) => ports[4 + n]!

  /** What Compose runs in `nats-<n + 1>`. */
  function flagsOf(n: number): string[] {
    const { command } = parse(readFileSync(FILE, 'utf8'))['x-nats'] as { command: string[] }
    return [
      ...command.map((flag) =>
        flag
          .replace(/\$\{NATS_PASSWORD[^}]*\}/g, PASSWORD)
          .replace('0.0.0.0:6222', `127.0.0.1:${routes(n)}`)
          .replace(/nats-(\d):6222/g, (_, server) => `127.0.0.1:${routes(Number(server) - 1)}`)
          .replace('--store_dir=/data', `--store_dir=${tempFolder('compose-nats')}`),
      ),
      '--addr=127.0.0.1',
      `--port=${clients(n)}`,
      `--name=nats-${n + 1}`,
    ]
  }

  /** Answers what the server has logged so far. */
  async function start(flags: string[]): Promise<() => string> {
    const server = spawn(await natsBinary(), flags, { stdio: ['ignore', 'ignore', 'pipe'] })
    servers.push(server)
    let log = ''
    server.stderr!.on('data', (text) => {
      log += text
    })
    await eventually(() => expect(log).to.include('Server is ready'))
    return () => log
  }

  async function client(n: number, options = {}): Promise<NatsConnection> {
    const connection = await connect({ servers: `127.0.0.1:${clients(n)}`, ...options })
    connections.push(connection)
    return connection
  }

  it('form a cluster', async () => {
    const [one, other] = [await client(0, USER), await client(2, USER)]
    const heard = other.subscribe('of.one')
    await other.flush()
    await eventually(async () => {
      one.publish('of.one')
      await one.flush()
      expect(heard.getReceived()).to.be.above(0)
    })
  })

  it('refuse a server without the password', async () => {
    const route = `--routes=nats://127.0.0.1:${routes(0)}`
    const cluster = `--cluster=nats://127.0.0.1:${routes(3)}`
    const log = await start([
      '--cluster_name=penstock',
      cluster,
      route,
      '--addr=127.0.0.1',
      `--port=${clients(3)}`,
    ])
    const rogue = await client(3)
    const heard = rogue.subscribe('>')
    await rogue.flush()
    await eventually(() => expect(log()).to.match(/Authorization Violation|authorization violation/))
    const one = await client(0, USER)
    one.publish('of.a.tenant')
    await one.flush()
    await rogue.flush()
    expect(heard.getReceived()).to.equal(0)
  })
})
