/** What must hold at the end of a run, whatever happened in it (reliability: the checker). */
import { isDeepStrictEqual } from 'node:util'
import { decodePack, type PackItem, readItem } from '../../../internal/domain/pack.ts'
import { decodeCommit } from '../../../internal/shard/journal/codec.ts'
import { BUFFERS } from './buffers.ts'
import type { Accepted } from './ingress.ts'
import type { World } from './world.ts'

export function check(run: {
  world: World
  accepted: Accepted[]
  /** Every item that was ever accepted. */
  all: readonly PackItem[]
  told: Set<string>
  settled: boolean
  /** Packs whose senders do not know yet which of their items are duplicates. */
  unanswered: number
}): string[] {
  const { world } = run
  const both = [...losses(run), ...invented(run), ...bodies(world)]
  // The shard waits for its repair.
  if (world.losses.told !== null) return both
  const ended = [...verdicts(run), ...storage(world), ...world.losses.unnoticed()]
  // What was decided and is gone is decided again.
  if (world.losses.any) return [...both, ...ended]
  return [...both, ...ended, ...duplicates(run), ...keys(world), ...order(run), ...counters(world)]
}

function idOf({ item }: { item: PackItem }): string {
  return JSON.parse(Buffer.from(item.payload).toString()).id as string
}

function losses({ world, accepted, settled }: Parameters<typeof check>[0]): string[] {
  const isTold = world.losses.told !== null
  const errors = settled || isTold ? [] : ['something is still buffered']
  const stored = isTold ? storedItems(world) : new Set()
  const delivered = new Set(world.sent.filter((sent) => sent.delivered).flatMap((sent) => sent.items))
  const dead = deadItems(world)
  for (const each of accepted) {
    const id = idOf(each)
    if (delivered.has(id) || dead.has(id) || stored.has(each.item.itemId)) continue
    // Both are judged as they are written.
    const how = world.items.at(each)?.end?.how
    if (!(settled || isTold) || how === 'drop' || how === 'discard') continue
    errors.push(`lost ${id}`)
  }
  return errors
}

/** Ids of payloads of all that became a dead letter. */
function deadItems({ rows, deletedRows }: World): Set<string> {
  const dead = new Set<string>()
  for (const row of [...rows.values(), ...deletedRows.values()]) {
    for (const item of JSON.parse(Buffer.from(row.body).toString()).items) dead.add(item.payload.id)
  }
  return dead
}

/** Ids of all items that a log still holds: a repair finds them. */
function storedItems({ inbox, journal }: World): Set<string> {
  const stored = new Set<string>()
  for (const { data } of inbox.messages) decodePack(data, ({ itemId }) => void stored.add(itemId))
  for (const { data } of journal.messages) {
    for (const record of decodeCommit(data).records) {
      for (const { item } of record.type === 'keep' ? record.items : []) stored.add(readItem(item, 0).itemId)
    }
  }
  return stored
}

function invented({ world, all }: Parameters<typeof check>[0]): string[] {
  const known = new Set(all.map((item) => idOf({ item })))
  const tried = new Set(world.sent.flatMap((sent) => sent.items))
  return [...tried].filter((id) => !known.has(id)).map((id) => `invented ${id}`)
}

function duplicates({ world, accepted, told }: Parameters<typeof check>[0]): string[] {
  const tried = new Set(world.sent.flatMap((sent) => sent.items))
  const dead = deadItems(world)
  const sent = accepted.filter((each) => tried.has(idOf(each)) || dead.has(idOf(each)))
  const wrong = sent.filter(({ item }) => told.has(item.itemId))
  return wrong.map((each) => `told duplicate but sent ${idOf(each)}`)
}

/** One idempotency key never names two bodies. */
function bodies({ sent, losses }: World): string[] {
  const errors: string[] = []
  const known = new Map<string, string>()
  for (const { key, body } of sent) {
    const version = Number(key.slice(key.lastIndexOf('v') + 1))
    if ((known.get(key) ?? body) !== body && !losses.mayRepeat(version))
      errors.push(`two bodies under ${key}`)
    known.set(key, body)
  }
  return errors
}

function keys({ sent, rows, deletedRows, settlements }: World): string[] {
  const errors: string[] = []
  const keyOf = new Map<string, string>()
  for (const { key, items } of sent) {
    for (const item of items) {
      if ((keyOf.get(item) ?? key) !== key) errors.push(`two keys for ${item}`)
      keyOf.set(item, key)
    }
  }
  for (const name of [...rows.keys(), ...deletedRows.keys()])
    if (settlements.delivered.has(name)) errors.push(`done and dead ${name}`)
  return errors
}

/** First attempts of the owners of the time follow the log order in each group. */
function order({ world, accepted }: Parameters<typeof check>[0]): string[] {
  const errors: string[] = []
  const first = new Map<string, number>()
  for (const { items, current } of world.sent) {
    for (const id of current ? items : []) if (!first.has(id)) first.set(id, first.size)
  }
  const last = new Map<string, number>()
  for (const each of accepted) {
    const at = first.get(idOf(each))
    if (at === undefined || each.item.bufferUid === BUFFERS.parallel) continue
    const group = each.item.groupToken
    if (at < (last.get(group) ?? -1)) errors.push(`order ${idOf(each)}`)
    last.set(group, at)
  }
  return errors
}

/** Every pack that waits for a verdict is told one, and every sender that asks is answered. */
function verdicts({ world, settled, unanswered }: Parameters<typeof check>[0]): string[] {
  const errors = settled ? world.verdicts.missing() : []
  return unanswered === 0 ? errors : [...errors, `${unanswered} packs were not answered`]
}

/** The counters were told every fact once, in the order of the journal. */
function counters({ facts: counted, settlements: { facts } }: World): string[] {
  if (counted.length !== facts.length)
    return [`${counted.length} facts were counted, ${facts.length} batches settled`]
  const wrong = facts.filter((fact, at) => !isDeepStrictEqual({ ...fact }, { ...counted[at] }))
  return wrong.map((fact) => `not counted as it is: ${JSON.stringify(fact)}`)
}

/** Housekeeping has had its time: neither log keeps what is over. */
function storage({ inbox, journal }: World): string[] {
  const errors: string[] = []
  if (inbox.messages.length > 40) errors.push(`the inbox still holds ${inbox.messages.length} messages`)
  if (journal.messages.length > 200) errors.push(`the journal still holds ${journal.messages.length} commits`)
  return errors
}
