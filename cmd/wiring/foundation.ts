/** What every role stands on: log, metrics, the ops port, Postgres with its caches, NATS with its streams. */
import { createIdentityCache, type IdentityCache } from '../../internal/auth/identity-cache.ts'
import { createKeyCache, type KeyCache } from '../../internal/auth/key-cache.ts'
import { type BufferCache, createBufferCache } from '../../internal/buffers/cache.ts'
import { BufferChanges } from '../../internal/buffers/changes.ts'
import type { BufferRecord } from '../../internal/domain/model.ts'
import { createBroker, type NatsBroker } from '../../internal/nats/broker.ts'
import { type Connection, connectBroker, UnusableBrokerError } from '../../internal/nats/connection.ts'
import { standingLeases } from '../../internal/nats/leases/standing-leases.ts'
import { ensureStreams, recordedShards } from '../../internal/nats/streams/streams.ts'
import { createApiKeyRows } from '../../internal/postgres/api-keys.ts'
import { customersOfBuffers } from '../../internal/postgres/buffer-states.ts'
import { createBufferRows } from '../../internal/postgres/buffers.ts'
import { createConfigFeed } from '../../internal/postgres/config-feed.ts'
import { connect, type Database } from '../../internal/postgres/connection.ts'
import { createIdentityRows } from '../../internal/postgres/identities.ts'
import { checkSchema } from '../../internal/postgres/migrate.ts'
import { forgetPositions } from '../../internal/postgres/projection.ts'
import { createSecretBox, type SecretBox, type SecretKey } from '../../internal/postgres/secrets.ts'
import { unverifiedMode } from '../../internal/postgres/tls.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { Generations } from '../../internal/runtime/generations.ts'
import type { Lifecycle } from '../../internal/runtime/lifecycle.ts'
import { MAX_COMMIT_BYTES } from '../../internal/shard/journal/records.ts'
import type { Logger } from '../../internal/telemetry/logger.ts'
import type { SecretTelemetry } from '../../internal/telemetry/secret-telemetry.ts'
import { type Config, ConfigError, defaultShards } from '../config/config.ts'
import { checkNeighbours } from './neighbours.ts'

export interface Node {
  readonly config: Config
  readonly log: Logger
  readonly clock: Clock
  readonly lifecycle: Lifecycle
  /** UUID of this run of the process. */
  readonly boot: string
  /** Somebody watches the local instance on a terminal: its log tells every delivery. */
  readonly watched: boolean
}

export interface Store {
  readonly db: Database
  readonly databaseUrl: string
  readonly box: SecretBox
  readonly buffers: BufferCache
  /** Requests that wait for a change end when it is closed. */
  readonly bufferChanges: BufferChanges
  readonly keys: KeyCache
  readonly identities: IdentityCache
}

/** Connections of the pool for use cases; feed and ledger have their own. */
const POOL = 8
/** Buffers with a secret that cannot be read, of which it is remembered that a line told it. */
const UNREADABLE_TOLD = 1_000

/** Postgres and the caches that follow its change feed. Rejects when it cannot be reached, and as `checkSchema`. */
export async function openStore(
  node: Node,
  databaseUrl: string,
  secretKeys: SecretKey[],
  secrets: Pick<SecretTelemetry, 'unreadable'>,
): Promise<Store> {
  const { lifecycle, clock, log } = node
  const sslmode = unverifiedMode(databaseUrl)
  if (sslmode !== undefined) log.warn({ sslmode }, 'the certificate of Postgres is not verified')
  const db = await lifecycle.acquire(
    'database',
    () => connect(databaseUrl, { max: POOL }),
    (it) => it.end({ timeout: 2 }),
  )
  await checkSchema(db)
  const box = createSecretBox(secretKeys)
  const rows = createBufferRows(db, box, oncePerVersion(secrets))
  const buffers = createBufferCache({ rows, clock })
  const onError = (error: unknown) => log.warn({ error: String(error) }, 'the last uses of keys wait')
  const bufferChanges = new BufferChanges({ customersOf: (uids) => customersOfBuffers(db, uids) })
  const keys = createKeyCache({ rows: createApiKeyRows(db), clock, onError })
  const identities = createIdentityCache({ rows: createIdentityRows(db), clock })
  await lifecycle.acquire(
    'change feed',
    async () => {
      const feed = createConfigFeed({
        db,
        clock,
        listeners: [
          { entity: 'buffer', ...buffers },
          {
            entity: 'buffer',
            changed: (uids) => bufferChanges.changed(uids),
            reset: () => bufferChanges.reset(),
          },
          { entity: 'api_key', ...keys },
          { entity: 'identity', ...identities },
          // Their own listeners start over; these are told of customers only.
          { entity: 'customer', changed: keys.customersChanged, reset: () => {} },
          { entity: 'customer', changed: identities.changed, reset: () => {} },
        ],
        onError: (error) => log.warn({ error: String(error) }, 'the change feed waits'),
      })
      await feed.start()
      return feed
    },
    (it) => it.stop(),
  )
  return { db, databaseUrl, box, buffers, bufferChanges, keys, identities }
}

/** A buffer may be read often while it cannot be read in full. */
function oncePerVersion(secrets: Pick<SecretTelemetry, 'unreadable'>): (record: BufferRecord) => void {
  const told = new Generations<string, number>(UNREADABLE_TOLD)
  return ({ uid, version, buffer: { bufferId }, unreadable }) => {
    if (unreadable === undefined || told.get(uid) === version) return
    told.set(uid, version)
    secrets.unreadable({ bufferId, uid, error: unreadable.why })
  }
}

/** Where the logs are. */
export interface LogServers {
  readonly natsUrls: string[]
  /** What all logs together may take, bytes; undefined: what the broker's account allows. */
  readonly storeBytes?: number
}

export interface Logs {
  readonly connection: Connection
  readonly broker: NatsBroker
  readonly shards: number
}

/**
 * Space in a message beyond its payload or records, bytes: ids, group key and message id as JSON text, the head of a
 * pack or commit, the headers of NATS.
 */
const ENVELOPE = 16 * 1024

/**
 * The largest message that the broker must take, bytes: an item with the longest body, in a pack or in a keep, or a
 * commit of the journal.
 */
function largestMessage({ maxBodyBytes }: Pick<Config, 'maxBodyBytes'>): number {
  return Math.max(maxBodyBytes, MAX_COMMIT_BYTES) + ENVELOPE
}

/** A shard whose commit the broker does not take stands still for ever: better no start than that. */
function checkMaxPayload(config: Config, { maxPayload }: Connection): void {
  const needed = largestMessage(config)
  if (maxPayload >= needed) return
  const least = largestMessage({ maxBodyBytes: 0 })
  if (maxPayload < least)
    throw new UnusableBrokerError(
      `the NATS server has a max_payload of ${maxPayload}: at least ${needed} is needed`,
    )
  throw new ConfigError(
    `PENSTOCK_MAX_BODY_BYTES: must be at most ${maxPayload - ENVELOPE}, or the NATS server's max_payload at least ${needed}`,
  )
}

/**
 * NATS, with all streams there and safe. Rejects with UnusableBrokerError, with ConfigError for a server of the
 * configuration that is not there or a body limit above the broker's, and as `checkNeighbours` throws; nothing was changed
 * then.
 */
export async function openLogs(
  node: Node,
  db: Database,
  { natsUrls: servers, storeBytes }: LogServers,
): Promise<Logs> {
  const { config, lifecycle, clock, log } = node
  const connection = await lifecycle.acquire(
    'broker connection',
    () =>
      connectBroker(
        { servers, ...(config.natsCredsFile !== undefined && { credsFile: config.natsCredsFile }) },
        config.replicas,
        {
          connection: (event) => log.warn(event, 'broker connection'),
          warning: (text) => log.warn(text),
        },
      ).catch((error: unknown) => {
        throw namingVariable(config, error)
      }),
    (it) => it.close(),
  )
  checkMaxPayload(config, connection)
  const options = { clock, replicas: config.replicas, ...(storeBytes !== undefined && { storeBytes }) }
  const shards = config.shards ?? (await recordedShards(connection, options)) ?? defaultShards()
  // Before the streams: with another count the empty ones of nodes that run would be made anew.
  checkNeighbours((await standingLeases(connection, clock)).leases, shards)
  const began = clock.now()
  if (await ensureStreams(connection, { ...options, shards })) {
    log.info({ shards }, 'the logs never held an item, and are made for another number of shards')
    await forgetPositions(db, began)
  }
  const broker = await lifecycle.acquire(
    'broker',
    () => createBroker(connection, { clock }),
    (it) => it.close(),
  )
  return { connection, broker, shards }
}

/** A server that is not there, where the configuration says that it is. */
function namingVariable({ natsUrls }: Config, error: unknown): unknown {
  if (natsUrls === undefined || !(error instanceof UnusableBrokerError)) return error
  return new ConfigError(`PENSTOCK_NATS_URL: ${error.message}`)
}
