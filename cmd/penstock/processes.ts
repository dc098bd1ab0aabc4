/**
 * The further processes of `npm start` (`PENSTOCK_PROCESSES`: docs/architecture/protocol.md, "The local instance"):
 * nodes of a cluster over the same servers. Half of all take requests, on the one port; the others share the shards,
 * by their leases. They stop as the parts of one process do: what takes requests first, the shards last, for a request
 * that is under way may wait for a verdict of its shard.
 */
import { join } from 'node:path'
import { prepareFolder } from '../../internal/embedded/data-folder.ts'
import {
  type NodeOptions,
  type NodeProcess,
  nodesFolder,
  startNode,
} from '../../internal/embedded/node-process.ts'
import type { Backends } from '../wiring/backends.ts'
import { settingsOfChildren, WATCHED } from '../wiring/child-nodes.ts'
import type { Node } from '../wiring/foundation.ts'
import { secretKeyText } from '../wiring/secrets.ts'
import { followLog, tellFollowed } from './followed-log.ts'

const ACTOR = join(import.meta.dirname, '..', 'actor', 'main.ts')
const FRONT = join(import.meta.dirname, 'front.ts')

/** Of `processes` in all: those that take requests, the first included, and those that run shards and nothing else. */
export function shareOut(processes: number): { fronts: number; actors: number } {
  const fronts = Math.max(1, Math.floor(processes / 2))
  return { fronts, actors: processes - fronts }
}

export class Processes {
  readonly #node: Node
  readonly #dir: string
  readonly #settings: Record<string, string>
  /** One of them keeps dying. */
  readonly #fail: (error: Error) => void
  readonly #fronts: NodeProcess[] = []
  readonly #actors: NodeProcess[] = []

  constructor(node: Node, backends: Backends, fail: (error: Error) => void) {
    this.#node = node
    this.#dir = prepareFolder(nodesFolder(node.config.dataDir))
    this.#settings = settingsOf(node, backends)
    this.#fail = fail
    // A process that ends without a drain, by an error or a second signal, still takes them along.
    process.once('exit', () => {
      for (const child of [...this.#fronts, ...this.#actors]) child.kill('SIGTERM')
    })
  }

  /** Resolves with their ops addresses when all of them are ready. */
  startActors(): Promise<string[]> {
    const { actors } = shareOut(this.#node.config.processes)
    return Promise.all(
      numbered('actor', actors).map((name) =>
        this.#start({ name, program: ACTOR, port: undefined, args: this.#watching() }, this.#actors),
      ),
    )
  }

  /** On the port of `url`; `args`: see `front.ts`. */
  async startFronts(url: string, args: readonly string[]): Promise<void> {
    const { fronts } = shareOut(this.#node.config.processes)
    const port = Number(new URL(url).port)
    const names = numbered('front', fronts - 1)
    await Promise.all(names.map((name) => this.#start({ name, program: FRONT, port, args }, this.#fronts)))
  }

  /** Its log is a file, and nobody watches that. */
  async #follow(name: string, logFile: string): Promise<void> {
    const { lifecycle, log, clock } = this.#node
    await lifecycle.acquire(
      `log of ${name}`,
      async () => followLog(clock, logFile, (event) => tellFollowed(log, event)),
      async (stop) => stop(),
    )
  }

  #watching(): string[] {
    return this.#node.watched ? [WATCHED] : []
  }

  /** `group`: those that stop together. */
  async #start(
    child: Pick<NodeOptions, 'name' | 'program' | 'port' | 'args'>,
    group: NodeProcess[],
  ): Promise<string> {
    const { lifecycle, log } = this.#node
    const { pid, opsUrl, logFile } = await lifecycle.acquire(
      child.name,
      async (signal) => {
        const options = { ...child, dir: this.#dir, settings: this.#settings, opsPort: 0, log, signal }
        const running = await startNode(options)
        group.push(running)
        running.keepRunning(this.#fail)
        return running
      },
      // All of them in the turn of the first: their drains take as long as one.
      () => stopAll(group),
    )
    log.info({ node: child.name, pid, opsUrl }, 'process started')
    if (this.#node.watched) await this.#follow(child.name, logFile)
    return opsUrl
  }
}

async function stopAll(group: readonly NodeProcess[]): Promise<void> {
  await Promise.all(group.map((each) => each.stop()))
}

function numbered(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index + 1}`)
}

function settingsOf({ config }: Node, { natsUrls, databaseUrl }: Backends): Record<string, string> {
  return settingsOfChildren({
    PENSTOCK_NATS_URL: natsUrls.join(','),
    PENSTOCK_DATABASE_URL: databaseUrl,
    PENSTOCK_SECRET_KEY: process.env.PENSTOCK_SECRET_KEY || secretKeyText(config.dataDir),
    PENSTOCK_DATA_DIR: config.dataDir,
    PENSTOCK_SYNC: config.sync,
    PENSTOCK_LOCAL: String(config.local),
    PENSTOCK_PROCESSES: '',
  })
}
