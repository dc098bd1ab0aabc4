/** What must hold at the end of a run, whatever happened in it (reliability: the checker). */
import { isDeepStrictEqual } from 'node:util'
import { BUFFERS } from './buffers.ts'
import type { Accepted } from './ingress.ts'
import type { World } from './world.ts'

export function check(run: {
  world: World
  accepted: Accepted[]
  told: Set<string>
  settled: boolean
  /** Packs whose senders do not know yet which of their items are duplicates. */
  unanswered: number
}): string[] {
  const { world } = run
  return [
    ...losses(run),
    ...keys(world),
    ...order(run),
    ...verdicts(run),
    ...counters(world),
    ...storage(world),
  ]
}

function idOf({ item }: Accepted): string {
  return JSON.parse(Buffer.from(item.payload).toString()).id as string
}

function losses({ world, accepted, told, settled }: Parameters<typeof check>[0]): string[] {
  const errors = settled ? [] : ['something is still buffered']
  const delivered = new Set(world.sent.filter((sent) => sent.delivered).flatMap((sent) => sent.items))
  const tried = new Set(world.sent.flatMap((sent) => sent.items))
  const dead = new Set<string>()
  for (const row of [...world.rows.values(), ...world.deletedRows.values()]) {
    for (const item of JSON.parse(Buffer.from(row.body).toString()).items) dead.add(item.payload.id)
  }
  const known = new Set(accepted.map(idOf))
  for (const id of tried) if (!known.has(id)) errors.push(`invented ${id}`)
  for (const each of accepted) {
    const id = idOf(each)
    if (told.has(each.item.itemId) && (tried.has(id) || dead.has(id)))
      errors.push(`told duplicate but sent ${id}`)
    if (delivered.has(id) || dead.has(id)) continue
    // Both are judged as they are written.
    const how = world.items.at(each)?.end?.how
    if (!settled || how === 'drop' || how === 'discard') continue
    errors.push(`lost ${id}`)
  }
  return errors
}

function keys({ sent, rows, deletedRows, settlements }: World): string[] {
  const errors: string[] = []
  const bodies = new Map<string, string>()
  const keyOf = new Map<string, string>()
  for (const { key, body, items } of sent) {
    if ((bodies.get(key) ?? body) !== body) errors.push(`two bodies under ${key}`)
    bodies.set(key, body)
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
