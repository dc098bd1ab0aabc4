/** One owner of a shard on the run's real NATS and Postgres; only the destination is a function of the test. */
import { randomBytes, randomUUID } from 'node:crypto'
import { groupToken } from '../../internal/domain/group.ts'
import type { BufferRecord } from '../../internal/domain/model.ts'
import { encodePack, withPackId } from '../../internal/domain/pack.ts'
import { PACK_ID_BYTES } from '../../internal/domain/pack-id.ts'
import type { Database } from '../../internal/postgres/connection.ts'
import { createDeadLetters } from '../../internal/postgres/dead-letters.ts'
import { createProjection } from '../../internal/postgres/projection.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { Semaphore } from '../../internal/runtime/semaphore.ts'
import { systemClock, systemRandomness } from '../../internal/runtime/system-clock.ts'
import { LARGE_WRITES_AT_ONCE } from '../../internal/shard/batches/dead-letter-write.ts'
import type { Broker } from '../../internal/shard/broker.ts'
import { HOUSEKEEPING_LIMITS, type HousekeepingLimits } from '../../internal/shard/housekeeping/limits.ts'
import { decodeCommit } from '../../internal/shard/journal/codec.ts'
import type { JournalRecord } from '../../internal/shard/journal/records.ts'
import type { Membership } from '../../internal/shard/ownership/membership.ts'
import { ActorNode } from '../../internal/shard/ownership/node.ts'
import type {
  AttemptRequest,
  AttemptResult,
  DeletedBuffers,
  Policies,
  ShardTelemetry,
} from '../../internal/shard/ports.ts'
import { Shard } from '../../internal/shard/shard.ts'
import { alone } from '../support/alone.ts'
import type { TestBuffer } from '../support/rows.ts'

export type Destination = (request: AttemptRequest) => Promise<number> | number

export interface Owner {
  readonly shard: Shard
  readonly boot: string
  /** Idempotency key and body of every attempt. */
  readonly sent: { key: string; body: string }[]
  readonly states: string[]
  readonly problems: string[]
  readonly gauges: { bufferedItems: number; residentBytes: number }
  ended: Error | null
}

export interface OwnerOptions {
  broker: Broker
  db: Database
  buffer: TestBuffer
  destination?: Destination
  housekeeping?: Partial<HousekeepingLimits>
  payloadBudget?: number
  /** Default 60,000. */
  payloadMs?: number
  batch?: Partial<BufferRecord['buffer']['batch']>
  /** Of a segment; default 2,000. */
  maxGroupItems?: number
  maxAttempts?: number
  attemptsPerBuffer?: number
  /** Of a node; default 10,000. */
  firstClaimsMs?: number
  /** Between attempts; default 50. */
  backoffMs?: number
  /** Whether the node holds its lease; default: it does. */
  holds?: () => boolean
  deletedBuffers?: DeletedBuffers
  /** Before it settles the buffer's record cannot be read; default: at once. */
  configured?: Promise<void>
  /** Default: the record of `buffer`, for ever. */
  policies?: Policies
  /** Default 0. */
  shard?: number
  /** Its time of day is ahead by so many ms, or by what the function says at that moment; default 0. */
  aheadMs?: number | (() => number)
}

export function recordOf(buffer: TestBuffer, options: Partial<OwnerOptions> = {}): BufferRecord {
  return {
    uid: buffer.uid,
    version: 1,
    deleted: false,
    suspended: false,
    buffer: {
      bufferId: buffer.bufferId,
      customerId: buffer.customerId,
      projectId: buffer.projectId,
      name: 'Test',
      enabled: true,
      groupKey: { mode: 'jsonpath', path: '$.k' },
      batch: {
        maxItems: 3,
        maxBytes: 262_144,
        idleTimeoutMs: 100,
        maxWaitFromFirstMs: 1_000,
        ...options.batch,
      },
      overflow: {
        maxGroupItems: options.maxGroupItems ?? 2_000,
        maxGroupBytes: 5_242_880,
        policy: 'flush_early_then_continue',
      },
      delivery: { url: 'http://127.0.0.1/', method: 'POST', idempotencyHeader: 'x-idempotency-key' },
      throughput: {
        maxAttempts: options.maxAttempts ?? 2,
        backoff: { initialMs: options.backoffMs ?? 50, maxMs: options.backoffMs ?? 50, multiplier: 1 },
        minDelayBetweenFlushMs: 0,
        maxConcurrencyPerGroup: 1,
      },
      dlqPauseThreshold: 10,
      analytics: { sampleDeliveryLogs: 0 },
      consecutiveDlqCount: 0,
      createdAt: 0,
      updatedAt: 0,
    },
  }
}

function resultOf(status: number): AttemptResult {
  const delivered = status >= 200 && status < 300
  return {
    delivered,
    retryable: !delivered && (status < 400 || status >= 500),
    statusCode: status,
    errorClass: delivered ? null : 'http_5xx',
    error: delivered ? null : `status ${status}`,
    durationMs: 1,
    responseBody: null,
  }
}

function clockAhead(ms: number | (() => number)): Clock {
  const clock = systemClock()
  return { ...clock, now: () => clock.now() + (typeof ms === 'number' ? ms : ms()) }
}

/** What a shard of the test has around it, with everything that it told. */
function surroundings(options: OwnerOptions) {
  const record = recordOf(options.buffer, options)
  const states: string[] = []
  const problems: string[] = []
  const gauges = { bufferedItems: 0, residentBytes: 0 }
  const sent: Owner['sent'] = []
  const nothing = () => {}
  const telemetry: ShardTelemetry = {
    ownership: ({ state }) => states.push(state),
    gauges: (event) => Object.assign(gauges, event),
    problem: ({ what, error }) => problems.push(`${what}: ${error}`),
    flush: nothing,
    delivery: nothing,
    dead: nothing,
    paused: nothing,
    discarded: nothing,
    dropped: nothing,
    commit: nothing,
  }
  return {
    told: { states, problems, gauges, sent },
    ports: {
      boot: randomUUID(),
      telemetry,
      broker: options.broker,
      clock: clockAhead(options.aheadMs ?? 0),
      randomness: systemRandomness(),
      policies: options.policies ?? {
        peek: (uid: string) => (uid === record.uid && !options.configured ? record : undefined),
        load: async (uid: string) => {
          await options.configured
          return uid === record.uid ? record : undefined
        },
        onChange: () => nothing,
      },
      deliverer: {
        hasRoom: () => true,
        attempt: async (request: AttemptRequest) => {
          if (!request.proceed()) return { ...resultOf(0), unsent: true }
          sent.push({ key: request.key, body: Buffer.from(request.body).toString() })
          return resultOf(await (options.destination ?? (() => 200))(request))
        },
      },
      deadLetters: createDeadLetters(options.db),
      projection: createProjection(options.db),
      ...(options.deletedBuffers && { deletedBuffers: options.deletedBuffers }),
      ...(options.holds && { holds: options.holds }),
      limits: {
        payloadBudget: options.payloadBudget ?? 16 * 1024 * 1024,
        payloadMs: options.payloadMs ?? 60_000,
        attemptsPerBuffer: options.attemptsPerBuffer ?? 16,
        factsAtOnce: 5_000,
        housekeeping: { ...HOUSEKEEPING_LIMITS, syncLagMs: 0, ...options.housekeeping },
      },
    },
  }
}

export function createOwner(options: OwnerOptions): Owner {
  const { told, ports } = surroundings(options)
  const onEnd = (error: Error) => {
    owner.ended = error
  }
  const owner: Owner = {
    ...told,
    boot: ports.boot,
    ended: null,
    shard: new Shard({
      ...ports,
      largeWrites: new Semaphore(LARGE_WRITES_AT_ONCE),
      shard: options.shard ?? 0,
      claim: 1,
      onEnd,
    }),
  }
  return owner
}

/** A node that runs shards 0 to `shards` - 1, or its share of them when `members` says who else there is. */
export function createNode(
  options: OwnerOptions,
  shards: number,
  members: (boot: string) => Membership = (boot) => alone(boot, shards),
  settleMs = 0,
) {
  const { told, ports } = surroundings(options)
  const membership = members(ports.boot)
  const { firstClaimsMs = 10_000 } = options
  const node = new ActorNode({ ...ports, shards, membership, settleMs, firstClaimsMs })
  return { ...told, boot: ports.boot, node }
}

let packs = 0

/** One pack with these payloads, one group each key; answers its sequence. */
export async function ingest(
  broker: Broker,
  buffer: TestBuffer,
  items: { key: string; n: number; messageId?: string; pad?: number }[],
  shard = 0,
): Promise<number> {
  const packId = Buffer.from(`pack${String(++packs).padStart(8, '0')}`)
  const pack = encodePack(
    packId,
    null,
    items.map(({ key, n, messageId, pad }) => {
      const itemId = randomUUID()
      return {
        itemId,
        bufferUid: buffer.uid,
        groupToken: groupToken(buffer.uid, key),
        groupKey: key,
        messageId: messageId ?? itemId,
        explicit: messageId !== undefined,
        credits: 1,
        receivedAt: 1_790_000_000_000 + n,
        payload: Buffer.from(JSON.stringify({ k: key, n, pad: 'x'.repeat(pad ?? 0) })),
      }
    }),
  )
  const answer = await broker.inbox(shard).append(pack, {
    subject: `items.${shard}.mixed`,
    msgId: packId.toString('base64url'),
    timeoutMs: 10_000,
  })
  if (answer.kind !== 'stored') throw new Error(JSON.stringify(answer))
  return answer.seq
}

/**
 * Stores the pack at `seq` once more whenever it is called, as a broker does that has forgotten its message id. Answers
 * the new sequence.
 */
export async function repetitionOf(broker: Broker, seq: number, shard = 0): Promise<() => Promise<number>> {
  const inbox = broker.inbox(shard)
  const message = await inbox.get(seq)
  if (message === undefined) throw new Error(`nothing stands at ${seq}`)
  return async () => {
    const again = { subject: `items.${shard}.mixed`, msgId: randomUUID(), timeoutMs: 10_000 }
    const answer = await inbox.append(message.data, again)
    if (answer.kind !== 'stored') throw new Error(JSON.stringify(answer))
    return answer.seq
  }
}

/** Stores the items of the pack at `seq` once more in a pack of another id, as a repair does. */
export async function copyOf(broker: Broker, seq: number, shard = 0): Promise<void> {
  const inbox = broker.inbox(shard)
  const message = await inbox.get(seq)
  if (message === undefined) throw new Error(`nothing stands at ${seq}`)
  const packId = randomBytes(PACK_ID_BYTES)
  const copy = { subject: `items.${shard}.mixed`, msgId: randomUUID(), timeoutMs: 10_000 }
  const answer = await inbox.append(withPackId(message.data, packId), copy)
  if (answer.kind !== 'stored') throw new Error(JSON.stringify(answer))
}

/** The `n` of every item of a body, in order. */
export function numbersOf(body: string): number[] {
  return (JSON.parse(body).items as { payload: { n: number } }[]).map(({ payload }) => payload.n)
}

/** Every record of the journal with the epoch of its writer. */
export async function journalRecords(
  broker: Broker,
  shard = 0,
): Promise<{ seq: number; boot: string; record: JournalRecord }[]> {
  const log = broker.journal(shard)
  const { firstSeq, lastSeq } = await log.state()
  const records: { seq: number; boot: string; record: JournalRecord }[] = []
  for await (const { seq, data } of log.range(firstSeq, lastSeq)) {
    const { boot, records: some } = decodeCommit(data)
    records.push(...some.map((record) => ({ seq, boot, record })))
  }
  return records
}
