/** Nodes of a cluster as processes of their own, over one broker and one database. */
import { randomBytes } from 'node:crypto'
import { Api } from './api.ts'
import { eventually } from './eventually.ts'
import { freshDatabase, natsAccount } from './servers.ts'
import { type Service, startService } from './service.ts'
import { tempFolder } from './temp-folders.ts'

export type ClusterRole = 'ingress' | 'admin' | 'actor'

/** From the root of the repository; default: those of the installation. */
export type Programs = Readonly<Partial<Record<ClusterRole | 'migrate', string>>>

export interface ClusterNode {
  readonly role: ClusterRole
  readonly service: Service
  /** Base address; throws for an actor. */
  readonly url: string
  readonly opsUrl: string
  /** Its exit code or signal. */
  stop(signal?: NodeJS.Signals): Promise<number | string>
}

export class Cluster {
  readonly nodes: ClusterNode[] = []
  readonly #env: Record<string, string>
  readonly #key: string
  readonly #programs: Programs

  private constructor(env: Record<string, string>, key: string, programs: Programs) {
    this.#env = env
    this.#key = key
    this.#programs = programs
  }

  /** Servers and settings; no node runs yet. */
  static async create(env: Record<string, string> = {}, programs: Programs = {}): Promise<Cluster> {
    const key = `svk_${randomBytes(24).toString('hex')}`
    const shared = {
      PENSTOCK_NATS_URL: env.PENSTOCK_NATS_URL ?? (await natsAccount()).url,
      PENSTOCK_DATABASE_URL: env.PENSTOCK_DATABASE_URL ?? (await freshDatabase()),
      PENSTOCK_SECRET_KEY: randomBytes(32).toString('base64'),
      // Nobody cuts the power of these servers.
      PENSTOCK_SYNC: 'always',
      // Tests ask one after the other as fast as they can, which no tenant may.
      PENSTOCK_KEY_REQUESTS_PER_SECOND: '0',
      PENSTOCK_SHARDS: '4',
      PENSTOCK_OWNER_KEYS: `cluster=${key}`,
      PENSTOCK_INITIAL_CREDITS: '1000000',
      PENSTOCK_ALLOW_DESTINATIONS: '127.0.0.0/8',
      PENSTOCK_LOG_LEVEL: 'debug',
    }
    return new Cluster({ ...shared, ...env }, key, programs)
  }

  get databaseUrl(): string {
    return this.#env.PENSTOCK_DATABASE_URL!
  }

  get natsUrl(): string {
    return this.#env.PENSTOCK_NATS_URL!
  }

  /** Secret of the customer `cluster`. */
  get ownerKey(): string {
    return this.#key
  }

  /** Starts a program of the installation and resolves as soon as its process is there; an empty variable is unset. */
  spawn(role: ClusterRole | 'migrate', env: Record<string, string> = {}): Promise<Service> {
    const program = this.#programs[role] ?? `cmd/${role}/main.ts`
    return startService({ dataDir: tempFolder(role), program, env: { ...this.#env, ...env } })
  }

  /** Starts a node and resolves when it is ready; rejects with its output when it ends before, or is not ready in time. */
  async start(role: ClusterRole, env: Record<string, string> = {}): Promise<ClusterNode> {
    const service = await this.spawn(role, env)
    const ended = service.exited().then((code) => {
      throw new Error(`the ${role} ended with ${code}:\n${service.output()}`)
    })
    const ready = eventually(() => service.events.find(({ msg }) => msg === 'ready') ?? false, {
      timeoutMs: 60_000,
    }).catch((error: unknown) => {
      throw new Error(`the ${role} is not ready within 60 s:\n${service.output()}`, { cause: error })
    })
    ended.catch(() => {})
    const event = await Promise.race([ready, ended]).catch((error: unknown) => {
      // One that is late would go on unseen, and take its part of the shards.
      service.child.kill('SIGKILL')
      throw error
    })
    const node: ClusterNode = {
      role,
      service,
      opsUrl: `http://127.0.0.1:${event.opsPort}`,
      get url() {
        if (typeof event.url !== 'string') throw new Error(`an ${role} has no address`)
        return event.url
      },
      stop(signal = 'SIGTERM') {
        service.child.kill(signal)
        return service.exited()
      },
    }
    this.nodes.push(node)
    return node
  }

  /** As the owner of the customer `cluster`, at this node. */
  api(node: ClusterNode): Api {
    return new Api(() => node.url, this.#key, 'cluster')
  }

  /** What a command beside the nodes is given. */
  get environment(): Record<string, string> {
    return this.#env
  }

  /** Ends whatever still runs. */
  async stop(): Promise<void> {
    const running = this.nodes.filter(({ service }) => service.child.exitCode === null)
    await Promise.all(running.map((node) => node.stop('SIGKILL')))
  }
}
