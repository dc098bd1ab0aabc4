/**
 * A cluster under faults: nodes as processes of their own, each behind proxies to broker and database; its
 * senders and its destination; and the judgement at the end, by the same rules as for one service.
 */
import { connect, type NatsConnection } from 'nats'

import { Api, type BufferFields } from '../support/api.ts'
import { Cluster, type ClusterRole, type Programs } from '../support/cluster.ts'
import { eventually, untilNone } from '../support/eventually.ts'
import { seededFractions } from '../support/seeded.ts'
import { freshDatabase } from '../support/servers.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { readDatabase } from './aftermath.ts'
import { type Broker, type Brokers, clusterOfBrokers, oneBroker } from './brokers.ts'
import { type BufferPatch, Buffers } from './buffers.ts'
import { check } from './checker.ts'
import { Destination } from './destination.ts'
import { Evidence, type Violation } from './evidence.ts'
import { type Fault, type History, KeptFailure, keepFailure, newHistory } from './history.ts'
import { NodePlace } from './node-place.ts'
import { checkSelfEnds, type SelfEnd } from './self-ends.ts'
import { noteStalls } from './stalls.ts'
import { StoredLogs } from './stored-logs.ts'
import { within } from './trial.ts'
import { Sender } from './webhooks.ts'

const CREDITS = 10_000_000
const PROJECT = 'faults'
/** For the cluster to heal, and for what is buffered to drain, ms. */
const PATIENCE_MS = 60_000

export interface ClusterTrialOptions {
  readonly label: string
  readonly seed: number
  /** Default 2 ingresses and 3 actors; an admin always. */
  readonly ingresses?: number
  readonly actors?: number
  /** Default 6. */
  readonly shards?: number
  /** Brokers of the broker, default 1; more are a JetStream cluster, reached without proxies. */
  readonly brokers?: number
  /** Default: of this machine. */
  readonly servers?: TrialServers
  readonly programs?: Programs
  /** How long the cluster may take to heal and to drain, ms; default 60,000 each. */
  readonly patienceMs?: number
}

/** Servers that somebody else has started; they end with the trial. */
export interface TrialServers {
  readonly broker: Brokers
  readonly databaseUrl: string
  /** When the broker writes to disk, as PENSTOCK_SYNC; default: nobody cuts its power. */
  readonly sync?: string
}

export class ClusterTrial {
  readonly options: ClusterTrialOptions
  readonly cluster: Cluster
  readonly brokers: readonly Broker[]
  readonly history: History
  readonly random: () => number
  readonly sender: Sender
  readonly places: NodePlace[] = []
  /** Between all nodes and the destination. */
  readonly destinationProxy: TcpProxy
  readonly destination: Destination
  readonly selfEnds: SelfEnd[] = []
  readonly buffers: Buffers
  readonly #servers: Brokers
  readonly #endStalls: () => void

  private constructor(
    options: ClusterTrialOptions,
    cluster: Cluster,
    servers: Brokers,
    more: Pick<ClusterTrial, 'destination' | 'destinationProxy' | 'history' | 'random'>,
  ) {
    this.options = options
    this.cluster = cluster
    this.#servers = servers
    this.brokers = servers.brokers
    this.history = more.history
    this.random = more.random
    this.destination = more.destination
    this.destinationProxy = more.destinationProxy
    this.sender = new Sender(
      this.history,
      (bufferId) => `${this.#gate().url}/v1/ingest/${PROJECT}/${bufferId}`,
      (url) => this.places.find((place) => url.startsWith(`${place.url}/`))?.name,
    )
    this.buffers = new Buffers({
      history: this.history,
      api: () => this.api,
      projectId: PROJECT,
      deliverTo: () => this.destinationProxy.through(this.destination.url),
    })
    this.#endStalls = noteStalls(this.history.stalls)
  }

  /** A new installation that runs and has no buffer. */
  static async open(options: ClusterTrialOptions): Promise<ClusterTrial> {
    const { seed, shards = 6, ingresses = 2, actors = 3, brokers = 1 } = options
    const {
      broker: servers,
      databaseUrl,
      sync,
    }: TrialServers = options.servers ?? (await ownServers(brokers))
    const cluster = await Cluster.create(
      {
        PENSTOCK_NATS_URL: servers.natsUrls.join(','),
        PENSTOCK_DATABASE_URL: databaseUrl,
        PENSTOCK_REPLICAS: String(servers.brokers.length),
        ...(sync !== undefined && { PENSTOCK_SYNC: sync }),
        PENSTOCK_SHARDS: String(shards),
        PENSTOCK_INITIAL_CREDITS: String(CREDITS),
        PENSTOCK_LOG_LEVEL: 'info',
      },
      options.programs,
    )
    const [history, random] = [newHistory({ shards, shape: 'cluster' }), seededFractions(seed)]
    const destination = await Destination.open(history, random, () => true)
    const destinationProxy = await TcpProxy.to(Number(new URL(destination.url).port))
    const trial = new ClusterTrial({ ...options, shards }, cluster, servers, {
      history,
      random,
      destination,
      destinationProxy,
    })
    const roles = ['admin', ...times(ingresses, 'ingress'), ...times(actors, 'actor')] as ClusterRole[]
    for (const role of roles) await trial.addPlace(role)
    await Promise.all(trial.places.map((place) => place.start()))
    await trial.api.createProject(PROJECT)
    await trial.untilHealed()
    return trial
  }

  /** One more place; no node runs in it yet. */
  async addPlace(role: ClusterRole): Promise<NodePlace> {
    const number = 1 + this.placesOf(role).length
    const place = await NodePlace.open({
      cluster: this.cluster,
      role,
      name: `${role}-${number}`,
      natsPort: this.#servers.natsPort,
      databasePort: Number(new URL(this.cluster.databaseUrl).port),
      onEnd: (end) => this.selfEnds.push(end),
    })
    this.places.push(place)
    return place
  }

  placesOf(role: ClusterRole): NodePlace[] {
    return this.places.filter((place) => place.role === role)
  }

  place(name: string): NodePlace {
    const place = this.places.find((each) => each.name === name)
    if (!place) throw new Error(`there is no ${name}`)
    return place
  }

  /** The management API, as the owner. */
  get api(): Api {
    return new Api(() => this.place('admin-1').url, this.cluster.ownerKey, 'cluster')
  }

  /** See `Buffers.create`. */
  createBuffer(bufferId: string, fields: Partial<BufferFields> = {}): Promise<void> {
    return this.buffers.create(bufferId, fields)
  }

  /** See `Buffers.patch`: a buffer that is changed past it is judged by what it was told before. */
  patchBuffer(bufferId: string, patch: BufferPatch): Promise<void> {
    return this.buffers.patch(bufferId, patch)
  }

  /** Enables a buffer that its dead letters disabled. Never rejects: the admin may be away, its caller comes again. */
  async enable(bufferId: string): Promise<void> {
    const enabled = this.buffers.enable(bufferId)
    await within(enabled, 3_000, 'the admin does not answer').catch(() => {})
  }

  /** A connection to the broker past all proxies. */
  brokerConnection(): Promise<NatsConnection> {
    const urls = this.#servers.natsUrls.map((url) => new URL(url))
    const { username: user, password: pass } = urls[0]!
    return connect({ servers: urls.map(({ host }) => host), user, pass })
  }

  /** Not over before its `to` is set. `holding`: it holds deliveries back, until its `heldUntil` is set. */
  beginFault(kind: string, holding = false): Fault {
    const never = Number.POSITIVE_INFINITY
    const fault = { kind, from: Date.now(), to: never, ...(holding && { heldUntil: never }) }
    this.history.faults.push(fault)
    return fault
  }

  /** Resolves when every node is ready and every shard runs on exactly one of them. */
  async untilHealed(): Promise<void> {
    await eventually(() => this.#isHealed(), { timeoutMs: this.#patienceMs, everyMs: 50 })
  }

  /** The place whose node runs this shard; rejects when none does. */
  async ownerOf(shard: number): Promise<NodePlace> {
    for (const place of this.placesOf('actor')) {
      if (place.wanted && (await place.shards()).includes(shard)) return place
    }
    throw new Error(`nobody runs shard ${shard}`)
  }

  /** Resolves when everything accepted has arrived and the logs hold nothing that is open; rejects when they stand still. */
  async drain(): Promise<void> {
    const options = { stillMs: this.#patienceMs, timeoutMs: 3 * this.#patienceMs, everyMs: 200 }
    await untilNone(async () => {
      for (const bufferId of this.buffers.ids) await this.enable(bufferId)
      return new Evidence(this.history).unseen
    }, options)
    await this.readLogs((logs) => untilNone(() => logs.openItems(), options))
  }

  /** Drains, ends every node, reads what is left behind, and judges; rejects with every breach. `rules`: default all. */
  async judge(rules: (history: History) => Violation[] = check): Promise<void> {
    const problems: Violation[] = []
    await this.drain().catch((error: unknown) => problems.push({ rule: 'drain', detail: String(error) }))
    await this.readLogs(async (logs) => {
      this.history.buffered = await logs.openItems()
      this.history.commits = await logs.commits()
    })
    this.history.claims = this.places.flatMap((place) => place.claims())
    const running = this.places.filter(({ wanted }) => wanted)
    const ends = await Promise.all(running.map((place) => place.end('SIGTERM')))
    for (const [index, end] of ends.entries())
      if (end !== 0) problems.push({ rule: 'exit', detail: { name: running[index]!.name, end } })
    await readDatabase(this.history, this.cluster.databaseUrl, CREDITS)
    problems.push(
      ...rules(this.history),
      ...checkSelfEnds(
        this.selfEnds,
        this.history.faults,
        this.brokers.map(({ name }) => name),
      ),
    )
    if (problems.length > 0) throw this.failure(problems)
  }

  /** The logs as they stand at the broker, past all proxies. */
  async readLogs<T>(read: (logs: StoredLogs) => Promise<T>): Promise<T> {
    const logs = await StoredLogs.open(this.#servers.natsUrls[0]!, this.options.shards!)
    try {
      return await read(logs)
    } finally {
      await logs.close()
    }
  }

  /** An error that says where the history is kept. */
  failure(problems: readonly Violation[]): Error {
    const output = this.cluster.nodes.map(({ role, service }) =>
      service.output().replaceAll(/^/gm, `${role} ${service.child.pid} `),
    )
    return keepFailure(this.options, this.history, problems, output.join('\n'))
  }

  /** Whatever fails in `work` leaves its history. */
  async keeping<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof KeptFailure) throw error
      const detail = error instanceof Error ? (error.stack ?? error.message) : String(error)
      throw this.failure([{ rule: 'run', detail }])
    }
  }

  async close(): Promise<void> {
    this.#endStalls()
    await Promise.all(this.places.map((place) => place.close()))
    await this.cluster.stop()
    await Promise.all([this.sender.close(), this.destination.close(), this.destinationProxy.close()])
    await this.#servers.stop()
  }

  get #patienceMs(): number {
    return this.options.patienceMs ?? PATIENCE_MS
  }

  /** As a balancer that soon notices who does not answer: any ingress, seldom one that stands still. */
  #gate(): NodePlace {
    const gates = this.placesOf('ingress')
    const gate = gates[Math.floor(this.random() * gates.length)]!
    if (!gate.frozen || this.random() < 0.05) return gate
    return gates.find(({ frozen }) => !frozen) ?? gate
  }

  async #isHealed(): Promise<boolean> {
    const places = this.places.filter(({ wanted }) => wanted)
    const ready = await Promise.all(places.map((place) => place.isReady()))
    if (!ready.every(Boolean)) return false
    const actors = places.filter(({ role }) => role === 'actor')
    const running = (await Promise.all(actors.map((place) => place.shards()))).flat()
    return running.length === this.options.shards && new Set(running).size === running.length
  }
}

async function ownServers(brokers: number): Promise<TrialServers> {
  const broker = brokers === 1 ? await oneBroker() : await clusterOfBrokers(brokers)
  return { broker, databaseUrl: await freshDatabase() }
}

function times<T>(count: number, value: T): T[] {
  return Array.from({ length: count }, () => value)
}
