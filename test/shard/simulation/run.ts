/** One seeded run: load and faults, then rest until everything is settled, then the checker. */
import { groupToken } from '../../../internal/domain/group.ts'
import type { BufferRecord } from '../../../internal/domain/model.ts'
import { encodePack, type PackItem } from '../../../internal/domain/pack.ts'
import { decodeVerdict } from '../../../internal/domain/verdict.ts'
import { FencedError } from '../../../internal/shard/ports.ts'
import { type Accepted, check } from './checker.ts'
import { Events, seeded } from './events.ts'
import { OwnerProcess } from './process.ts'
import { type Rule, World } from './world.ts'

const UID = '11111111-1111-4111-8111-111111111111'
const CHAOS_MS = 12_000
const REST_MS = 120_000

export interface RunResult {
  errors: string[]
  sent: number
  dead: number
  duplicates: number
  owners: number
  commits: number
  purgedJournal: number
  purgedInbox: number
}

function record(concurrency: number): BufferRecord {
  return {
    uid: UID,
    version: 1,
    deleted: false,
    buffer: {
      bufferId: 'b',
      customerId: 'c',
      projectId: 'p',
      name: 'b',
      enabled: true,
      groupKey: { mode: 'jsonpath', path: '$.k' },
      batch: { maxItems: 3, maxBytes: 400, idleTimeoutMs: 150, maxWaitFromFirstMs: 400 },
      overflow: { maxGroupItems: 5, maxGroupBytes: 2_000, policy: 'flush_early_then_continue' },
      delivery: { url: 'http://127.0.0.1/', method: 'POST', idempotencyHeader: 'x-idempotency-key' },
      throughput: {
        maxAttempts: 3,
        backoff: { initialMs: 60, maxMs: 500, multiplier: 2 },
        minDelayBetweenFlushMs: 0,
        maxConcurrencyPerGroup: concurrency,
      },
      dlqPauseThreshold: 3,
      analytics: { sampleDeliveryLogs: 0 },
      consecutiveDlqCount: 0,
      createdAt: 0,
      updatedAt: 0,
    },
  }
}

export async function run(seed: number, leftOut?: Rule): Promise<RunResult> {
  const random = seeded(seed)
  const events = new Events(random)
  const world = new World(events, leftOut)
  const records = new Map([[UID, record(1)]])
  const owners: OwnerProcess[] = []
  const accepted: Accepted[] = []
  const told = new Set<string>()
  const end = events.now + CHAOS_MS
  const start = () => owners.push(new OwnerProcess(world, owners.length + 1, records))

  let packs = 0
  const ingest = () => {
    if (events.now > end) return
    const items: PackItem[] = []
    const wait = random() < 0.9
    const reply = `verdicts.${++packs}`
    for (let count = events.between(1, 4); count > 0; count--)
      items.push(item(random, accepted.length + items.length))
    const explicit = items.some((each) => each.explicit)
    const data = encodePack(
      Buffer.from(`pack${String(packs).padStart(8, '0')}`),
      explicit && wait ? reply : null,
      items,
    )
    const answer = world.inbox.append(events.now, data, `p${packs}`)
    if (answer.kind !== 'stored') throw new Error('the inbox took no pack')
    accepted.push(...items.map((each, index) => ({ item: each, seq: answer.seq, index })))
    const hear = (bytes: Uint8Array): void => {
      for (const { index } of decodeVerdict(bytes)?.duplicates ?? []) told.add(items[index]!.itemId)
    }
    world.subscribers.set(reply, new Set([hear]))
    // An ingress whose PubAck was lost sends again under the same id, a broker may have restarted in between.
    if (random() < 0.15)
      events.after(events.between(50, 1_500), () => world.inbox.append(events.now, data, `p${packs}`))
    events.after(events.between(5, 60), ingest)
  }
  const trouble = () => {
    if (events.now > end) return
    const owner = owners[Math.floor(random() * owners.length)]!
    const luck = random()
    if (luck < 0.25 && owners.length < 9) start()
    else if (luck < 0.45) owner.kill()
    else if (luck < 0.7) owner.life.pausedUntil = events.now + events.between(50, 4_000)
    else if (luck < 0.85) world.inbox.forgetPurged()
    else if (world.rows.size > 0)
      world.deleteRow([...world.rows.keys()][Math.floor(random() * world.rows.size)]!)
    events.after(events.between(50, 900), trouble)
  }
  /** What the node does in the real system: somebody always claims a shard without an owner. */
  const watch = () => {
    if (owners.every((owner) => owner.gone)) start()
    events.after(300, watch)
  }
  start()
  watch()
  events.after(1, ingest)
  events.after(events.between(100, 800), trouble)
  await events.run(end)
  world.faults = false
  world.failing = 0.1
  const settled = () =>
    accepted.every(({ seq, index }) => isOver(world, seq, index)) && world.truth.batches.size === 0
  await events.run(end + REST_MS, settled)
  await events.run(events.now + 3_000)

  const errors = [...world.wrong, ...check({ world, accepted, told, settled: settled() })]
  for (const { ended } of owners) if (ended && !isExpectedEnd(ended)) errors.push(`ended: ${ended.stack}`)
  for (const owner of owners) owner.kill()
  return {
    errors,
    sent: world.sent.length,
    dead: world.rows.size + world.deletedRows.size,
    duplicates: told.size,
    owners: owners.length,
    commits: world.journal.lastSeq,
    purgedJournal: world.journal.lastSeq - (world.journal.messages[0]?.seq ?? 0),
    purgedInbox: world.inbox.messages.length,
  }
}

/** Fenced, or a claim that the network cut short: the node claims again. */
function isExpectedEnd(error: Error): boolean {
  return error instanceof FencedError || error.message === 'no answer'
}

function isOver({ truth }: World, seq: number, index: number): boolean {
  return (seq < truth.horizon || truth.finished.has(seq, index)) && !truth.kept.has(seq, index)
}

function item(random: () => number, number: number): PackItem {
  const groupKey = `g${Math.floor(random() * 3)}`
  const explicit = random() < 0.4
  const itemId = `22222222-2222-4222-8222-${String(number).padStart(12, '0')}`
  const id = `i${number}`
  return {
    itemId,
    bufferUid: UID,
    groupToken: groupToken(UID, groupKey),
    groupKey,
    messageId: explicit ? `m${Math.floor(random() * 6)}` : itemId,
    explicit,
    credits: 1,
    receivedAt: 1_700_000_000_000 + number,
    payload: Buffer.from(JSON.stringify({ k: groupKey, id, pad: 'x'.repeat(Math.floor(random() * 120)) })),
  }
}
