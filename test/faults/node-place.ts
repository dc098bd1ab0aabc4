/**
 * A place of a cluster under faults: one node after the other on the same addresses, each behind a network of
 * its own to broker and database. Whatever ends unasked is started again, as an orchestrator does.
 */
import { setTimeout as delay } from 'node:timers/promises'

import { freePort } from '../../internal/embedded/port.ts'
import type { ShardTable } from '../../internal/shard/status/shard-table.ts'
import type { Cluster, ClusterNode, ClusterRole } from '../support/cluster.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import type { Claim } from './history.ts'
import type { SelfEnd } from './self-ends.ts'

/** Starts that fail one after the other before the place is given up. */
const MOST_STARTS = 40
const BETWEEN_STARTS_MS = 500

export interface PlaceOptions {
  readonly cluster: Cluster
  readonly role: ClusterRole
  readonly name: string
  /** Through a proxy of its own; without one it finds the members of a broker's cluster by itself. */
  readonly natsPort: number | undefined
  readonly databasePort: number
  /** It ended, and nobody had asked it to. */
  readonly onEnd: (end: SelfEnd) => void
}

export class NodePlace {
  readonly role: ClusterRole
  readonly name: string
  /** undefined: the broker is a cluster. */
  readonly nats: TcpProxy | undefined
  readonly postgres: TcpProxy
  readonly #options: PlaceOptions
  readonly #port: number
  /** Every node that was ready here. */
  readonly #nodes: ClusterNode[] = []
  #node: ClusterNode | null = null
  #starting: Promise<void> = Promise.resolve()
  /** A node should run here. */
  #wanted = false
  #frozen = false

  private constructor(options: PlaceOptions, at: Pick<NodePlace, 'nats' | 'postgres'> & { port: number }) {
    this.role = options.role
    this.name = options.name
    this.nats = at.nats
    this.postgres = at.postgres
    this.#options = options
    this.#port = at.port
  }

  /** No node runs yet. */
  static async open(options: PlaceOptions): Promise<NodePlace> {
    const nats = options.natsPort === undefined ? undefined : await TcpProxy.to(options.natsPort)
    return new NodePlace(options, {
      nats,
      postgres: await TcpProxy.to(options.databasePort),
      port: await freePort(),
    })
  }

  /** Of its HTTP listener, also while no node runs; an actor has none. */
  get url(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** The node that runs; throws between two. */
  get node(): ClusterNode {
    if (!this.#node) throw new Error(`${this.name} does not run`)
    return this.#node
  }

  /** It runs, or will by itself. */
  get wanted(): boolean {
    return this.#wanted
  }

  get frozen(): boolean {
    return this.#frozen
  }

  /** Resolves when a node is ready here. Rejects when that is not to be had. */
  start(): Promise<void> {
    this.#wanted = true
    this.#starting = this.#run()
    return this.#starting
  }

  /** Ends it for now; its exit code or signal. */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | string> {
    this.#wanted = false
    await this.#starting.catch(() => {})
    const node = this.#node
    this.#node = null
    return node ? node.stop(signal) : 0
  }

  /** Resolves once a node is ready here: it may have ended by itself a moment ago, and be on its way back. */
  running(): Promise<void> {
    return this.#starting
  }

  freeze(): void {
    this.#frozen = true
    this.node.service.child.kill('SIGSTOP')
  }

  thaw(): void {
    this.#frozen = false
    this.#node?.service.child.kill('SIGCONT')
  }

  /** Everything of this place; a node that runs is killed. */
  async close(): Promise<void> {
    if (this.#node) await this.end('SIGKILL')
    await Promise.all([this.nats?.close(), this.postgres.close()])
  }

  /** The shards that an actor runs, by its metrics; rejects while it does not answer. */
  async shards(): Promise<number[]> {
    const text = await this.metrics()
    return [...text.matchAll(/^penstock_shard_epoch\{.*?shard="(\d+)".*?\} [1-9]/gm)].map(([, shard]) =>
      Number(shard),
    )
  }

  /** What nodes of this place said, up to now, that they own. */
  claims(): Claim[] {
    return this.#nodes
      .flatMap(({ service }) => service.events)
      .filter(({ msg, epoch }) => msg === 'ownership' && Number(epoch) > 0)
      .map(({ shard, epoch }) => ({ shard: Number(shard), epoch: Number(epoch), node: this.name }))
  }

  metrics(): Promise<string> {
    return this.#ops('/metrics')
  }

  /** The shards as this actor tells them. */
  async shardTable(): Promise<ShardTable> {
    return JSON.parse(await this.#ops('/shards'))
  }

  async isReady(): Promise<boolean> {
    return (await this.#ops('/ready')) === 'ready\n'
  }

  async #ops(path: string): Promise<string> {
    const signal = AbortSignal.timeout(2_000)
    return (await fetch(`${this.node.opsUrl}${path}`, { signal })).text()
  }

  async #run(): Promise<void> {
    const { cluster, role } = this.#options
    for (let starts = 1; this.#wanted; starts++) {
      const node = await cluster.start(role, this.#environment()).catch((error: unknown) => {
        const { message } = error as Error
        // One that was merely slow was ended by whoever waited for it.
        if (message.startsWith(`the ${role} ended with`)) this.#ended(true, lastWord(message))
        if (starts === MOST_STARTS) throw error
        return null
      })
      if (node) {
        this.#node = node
        this.#nodes.push(node)
        void this.#watch(node)
        return
      }
      // A broker or a database that is away refuses a start.
      await delay(BETWEEN_STARTS_MS)
    }
  }

  async #watch(node: ClusterNode): Promise<void> {
    const end = await node.service.exited()
    if (this.#node !== node) return
    this.#node = null
    this.#frozen = false
    this.#ended(false, lastWord(`${node.service.output()}\nended with ${end}`))
    if (this.#wanted) await this.start().catch(() => {})
  }

  #ended(starting: boolean, why: string): void {
    this.#options.onEnd({ name: this.name, at: Date.now(), starting, why })
  }

  #environment(): Record<string, string> {
    const { cluster } = this.#options
    return {
      PENSTOCK_PORT: String(this.#port),
      PENSTOCK_DATABASE_URL: this.postgres.through(cluster.databaseUrl),
      ...(this.nats && { PENSTOCK_NATS_URL: this.nats.through(cluster.natsUrl) }),
    }
  }
}

/** The fatal line of a node's output, with its error when it has one; else the last line. */
function lastWord(output: string): string {
  const lines = output.split('\n').filter((line) => line !== '')
  const fatal = lines.findLast((line) => line.startsWith('{"level":"fatal"'))
  if (fatal === undefined) return lines.at(-1)?.slice(0, 300) ?? ''
  const { msg, err } = JSON.parse(fatal) as { msg: string; err?: { type: string; message: string } }
  return err && (msg !== err.message || err.type !== 'Error') ? `${msg}: ${err.type}: ${err.message}` : msg
}
