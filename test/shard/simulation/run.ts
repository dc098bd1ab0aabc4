/** One seeded run: load and faults, then rest until everything is settled, then the checker. */
import { groupToken } from '../../../internal/domain/group.ts'
import type { BufferRecord } from '../../../internal/domain/model.ts'
import { encodePack, type PackItem } from '../../../internal/domain/pack.ts'
import { decodeVerdict } from '../../../internal/domain/verdict.ts'
import { FencedError } from '../../../internal/shard/ports.ts'
import { BUFFERS, record } from './buffers.ts'
import { type Accepted, check } from './checker.ts'
import { Events, seeded } from './events.ts'
import { OwnerProcess } from './process.ts'
import { type Rule, World } from './world.ts'

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

export async function run(seed: number, leftOut?: Rule): Promise<RunResult> {
  const random = seeded(seed)
  const events = new Events(random)
  const world = new World(events, leftOut)
  const records = new Map<string, BufferRecord>(
    Object.values(BUFFERS).map((uid) => [uid, record(uid, uid === BUFFERS.parallel ? 2 : 1)]),
  )
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
    else if (luck < 0.78) world.inbox.forgetPurged()
    else if (luck < 0.83) void owner.shard.stop(1_000).then(() => owner.kill())
    else if (luck < 0.9)
      void owner.shard.handOver(events.between(500, 12_000), start).then(() => owner.kill())
    else if (world.rows.size > 0)
      world.deleteRow([...world.rows.keys()][Math.floor(random() * world.rows.size)]!)
    events.after(events.between(50, leftOut ? 300 : 900), trouble)
  }
  const change = (uid: string, changes: { enabled: boolean; deleted?: boolean }) => {
    const old = records.get(uid)!
    const { enabled, deleted = old.deleted } = changes
    const next = { ...old, version: old.version + 1, deleted, buffer: { ...old.buffer, enabled } }
    records.set(uid, next)
    for (const owner of owners) owner.tell(next)
  }
  const toggle = () => {
    if (events.now > end) return
    change(BUFFERS.paused, { enabled: !records.get(BUFFERS.paused)!.buffer.enabled })
    events.after(events.between(200, 2_500), toggle)
  }
  events.after(events.between(2_000, 6_000), () => change(BUFFERS.deleted, { enabled: false }))
  events.after(events.between(6_000, 11_000), () =>
    change(BUFFERS.deleted, { enabled: false, deleted: true }),
  )
  events.after(300, toggle)
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
  change(BUFFERS.paused, { enabled: true })
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
  const luck = random()
  const bufferUid =
    luck < 0.55
      ? BUFFERS.plain
      : luck < 0.75
        ? BUFFERS.paused
        : luck < 0.9
          ? BUFFERS.parallel
          : BUFFERS.deleted
  const groupKey = `g${Math.floor(random() * 2)}`
  const explicit = random() < 0.4
  const itemId = `22222222-2222-4222-8222-${String(number).padStart(12, '0')}`
  const id = `i${number}`
  return {
    itemId,
    bufferUid,
    groupToken: groupToken(bufferUid, groupKey),
    groupKey,
    messageId: explicit ? `m${Math.floor(random() * 6)}` : itemId,
    explicit,
    credits: 1,
    receivedAt: 1_700_000_000_000 + number,
    payload: Buffer.from(JSON.stringify({ k: groupKey, id, pad: 'x'.repeat(Math.floor(random() * 120)) })),
  }
}
