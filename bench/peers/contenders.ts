/** Who is compared, each started anew for a cell, and what a 202 of theirs is worth. */
import { eventually } from '../../test/support/eventually.ts'
import { ownPostgres } from '../../test/support/servers.ts'
import { gaugeOf } from '../metrics.ts'
import { type Penstock, SECRET, type System, serve, startPenstock, startRival } from '../systems.ts'
import type { Window } from './analysis.ts'
import { startRedis } from './redis.ts'
import type { Tool, Tools } from './tools.ts'

export type Sync = 'default' | 'always'
export type ContenderName = 'penstock' | 'hand' | 'asynq' | 'bullmq' | 'graphile'

export interface Setting {
  sync: Sync
  window: Window
  /** Address of the sink. */
  sinkUrl: string
  /** Whether batches go out while items come in; else what came is kept until `clear`. */
  delivers: boolean
}

export interface Contender {
  readonly system: System
  /** Resolves when all that was accepted has reached whoever makes the batches. */
  settled?(accepted: number): Promise<void>
  /** Gets rid of what is still kept. */
  clear?(): Promise<void>
}

interface Definition {
  needs: readonly Tool[]
  /** What is on disk before a 202. */
  durability: Record<Sync, string>
  start(setting: Setting, tools: Tools): Promise<Contender>
}

/** The most there is, beyond every batch here: items, not bytes, end one, for the others know no bytes. */
const MAX_BYTES = 16 * 1_048_576
const HELD = { idleTimeoutMs: 3_600_000, maxWaitFromFirstMs: 3_600_000, maxItems: 10_000 }
const CLEARED_MS = 300_000
const NATS = { default: 'NATS syncs every second', always: 'NATS syncs before each ack' }
const REDIS = { default: 'Redis syncs every second', always: 'Redis syncs before each ack' }

export const CONTENDERS: Record<ContenderName, Definition> = {
  penstock: { needs: [], durability: NATS, start: penstock },
  hand: { needs: [], durability: NATS, start: async (setting) => ({ system: await hand(setting) }) },
  asynq: { needs: ['go', 'redis-server'], durability: REDIS, start: asynq },
  bullmq: { needs: ['npm', 'redis-server'], durability: REDIS, start: bullmq },
  graphile: {
    needs: ['npm'],
    durability: {
      default: 'Postgres syncs within 0.6 s',
      always: 'Postgres syncs before each ack',
    },
    start: async (setting, tools) => ({ system: await graphile(setting, tools) }),
  },
}

/** As PENSTOCK_SYNC. By default Redis syncs every second and NATS every two minutes: here both every second. */
export function natsSync(sync: Sync): string {
  return sync === 'always' ? 'always' : '1s'
}

async function penstock({ sync, window, sinkUrl, delivers }: Setting): Promise<Contender> {
  const system = await startPenstock({ sync: natsSync(sync) })
  const batch = delivers ? window : HELD
  const [bufferId, maxBytes] = ['items', MAX_BYTES]
  await system.createBuffer({ bufferId, batch: { ...batch, maxBytes }, deliverTo: sinkUrl, secret: SECRET })
  if (delivers) return { system }
  return {
    system,
    settled: (accepted) => untilBuffered(system, (items) => items === accepted),
    async clear() {
      await system.changeBuffer(bufferId, window)
      await untilBuffered(system, (items) => items === 0)
      await system.changeBuffer(bufferId, batch)
    },
  }
}

async function untilBuffered({ opsUrl }: Penstock, holds: (items: number) => boolean): Promise<void> {
  await eventually(async () => holds(await gaugeOf(opsUrl, 'penstock_buffered_items')), {
    timeoutMs: CLEARED_MS,
    everyMs: 50,
  })
}

function hand(setting: Setting): Promise<System> {
  return startRival('hand', natsSync(setting.sync), batching(setting))
}

async function asynq(setting: Setting, tools: Tools): Promise<Contender> {
  const program = await tools.asynq()
  const redis = await startRedis(setting.sync === 'always' ? 'always' : 'everysec')
  const env = { REDIS_ADDRESS: `127.0.0.1:${redis.port}`, ...batching(setting) }
  return { system: await serve('asynq', [program], redis, env), clear: redis.flush }
}

async function bullmq({ sync }: Setting, tools: Tools): Promise<Contender> {
  const modules = await tools.modules()
  const redis = await startRedis(sync === 'always' ? 'always' : 'everysec')
  const env = { REDIS_PORT: String(redis.port), PEER_MODULES: modules }
  return { system: await serve('bullmq', programOf('bullmq'), redis, env), clear: redis.flush }
}

async function graphile(setting: Setting, tools: Tools): Promise<System> {
  const modules = await tools.modules()
  const postgres = await ownPostgres({ durable: true })
  const commit = setting.sync === 'always' ? 'on' : 'off'
  const env = {
    DATABASE_URL: `${postgres.url}?options=${encodeURIComponent(`-c synchronous_commit=${commit}`)}`,
    PEER_MODULES: modules,
    NO_LOG_SUCCESS: '1',
    NODE_ENV: 'production',
  }
  return serve('graphile', programOf('graphile'), postgres, { ...env, ...batching(setting) })
}

function programOf(name: string): [string, string] {
  return [process.execPath, `bench/peers/node/${name}.ts`]
}

/** No sink: the program only takes items. */
function batching({ window, sinkUrl, delivers }: Setting): Record<string, string> {
  return {
    ...(delivers && { SINK_URL: sinkUrl }),
    IDLE_MS: String(window.idleTimeoutMs),
    MAX_WAIT_MS: String(window.maxWaitFromFirstMs),
    MAX_ITEMS: String(window.maxItems),
  }
}
