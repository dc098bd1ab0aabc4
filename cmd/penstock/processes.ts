/**
 * The further processes of `npm start` (design, section 11, `PENSTOCK_PROCESSES`): actors over the same servers, so
 * that requests and shards have cores of their own. They share the shards as the nodes of a cluster do, by their leases.
 */
import { join } from 'node:path'
import { prepareFolder } from '../../internal/embedded/data-folder.ts'
import { type NodeProcess, nodesFolder, startNode } from '../../internal/embedded/node-process.ts'
import { settingsOfChildren } from '../wiring/child-nodes.ts'
import type { Node } from '../wiring/foundation.ts'
import type { Ground } from '../wiring/ground.ts'
import { secretKeyText } from '../wiring/secrets.ts'

const ACTOR = join(import.meta.dirname, '..', 'actor', 'main.ts')

/** Resolves with their ops addresses when all of them are ready. `fail`: one of them keeps dying. */
export async function startProcesses(
  node: Node,
  ground: Ground,
  fail: (error: Error) => void,
): Promise<string[]> {
  const names = Array.from({ length: node.config.processes - 1 }, (_, index) => `actor-${index + 1}`)
  if (names.length === 0) return []
  const dir = prepareFolder(nodesFolder(node.config.dataDir))
  const settings = settingsOf(node, ground)
  const running: NodeProcess[] = []
  // A process that ends without a drain, by an error or a second signal, still takes them along.
  process.once('exit', () => {
    for (const actor of running) actor.kill('SIGTERM')
  })
  return Promise.all(names.map((name) => startOne(node, { name, dir, settings }, running, fail)))
}

interface Child {
  name: string
  dir: string
  settings: Record<string, string>
}

async function startOne(
  { lifecycle, log }: Node,
  child: Child,
  running: NodeProcess[],
  fail: (error: Error) => void,
): Promise<string> {
  const { pid, opsUrl } = await lifecycle.acquire(
    child.name,
    async (signal) => {
      const actor = await startNode({ ...child, program: ACTOR, port: undefined, opsPort: 0, log, signal })
      running.push(actor)
      // At once, not in its turn: its attempts in flight may take as long as those of this process.
      signal.addEventListener('abort', () => void actor.stop())
      actor.keepRunning(fail)
      return actor
    },
    (it: NodeProcess) => it.stop(),
  )
  log.info({ node: child.name, pid, opsUrl }, 'process started')
  return opsUrl
}

function settingsOf({ config }: Node, { natsUrls, databaseUrl }: Ground): Record<string, string> {
  return settingsOfChildren({
    PENSTOCK_NATS_URL: natsUrls.join(','),
    PENSTOCK_DATABASE_URL: databaseUrl,
    PENSTOCK_SECRET_KEY: process.env.PENSTOCK_SECRET_KEY || secretKeyText(config.dataDir),
    PENSTOCK_DATA_DIR: config.dataDir,
    PENSTOCK_LOCAL: String(config.local),
    PENSTOCK_PROCESSES: '',
  })
}
