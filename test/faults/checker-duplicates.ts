/** Deduplication (docs/reference/buffers.md, "Deduplication"): exact while the original is buffered, and only then. */
import { versionOf } from './batch-key.ts'
import { hidesItems, isOnTheWay } from './causes.ts'
import type { Evidence, Violation } from './evidence.ts'
import type { SentItem } from './history.ts'

/** An owner reads what is stored, and commits what is answered, well within this without a fault, ms. */
const LAG_MS = 5_000

export function checkDuplicates(evidence: Evidence): Violation[] {
  const seals = new Seals(evidence)
  return [
    ...evidence.history.sent.flatMap((item) => checkTold(evidence, item)),
    ...evidence.history.sent.flatMap((item) => checkMissed(evidence, seals, item)),
    ...checkWithinBatches(evidence),
  ]
}

/** Told `duplicate` means: never sent itself, and the named original is the one that is. */
function checkTold(evidence: Evidence, item: SentItem): Violation[] {
  const violations: Violation[] = []
  const dropped = item.answer?.status === 202 && evidence.lastSeen(item.n) === undefined
  if (item.answer?.duplicate) {
    if (!dropped) violations.push({ rule: 'duplicate-sent', detail: item })
    const duplicates = evidence.duplicatesOf(item)
    const original = duplicates.find((duplicate) => ownItemId(duplicate) === item.answer?.itemId)
    if (original && !evidence.settled(original.n)) violations.push({ rule: 'original-lost', detail: item })
    // One whose answer did not come may have the id that is named.
    if (!original && !duplicates.some(({ answer }) => answer?.itemId === undefined))
      violations.push({ rule: 'duplicate-of-nothing', detail: item })
  }
  if (
    dropped &&
    !evidence.duplicatesOf(item).some((duplicate) => mayBeBuffered(evidence, duplicate, item.sentAt))
  )
    violations.push({ rule: 'duplicate-of-what-is-over', detail: item })
  return violations
}

function ownItemId({ answer }: SentItem): string | undefined {
  return answer?.duplicate ? undefined : answer?.itemId
}

/** The duplicate went out, and its owner need not have known before `at` that it is over. */
function mayBeBuffered(evidence: Evidence, duplicate: SentItem, at: number): boolean {
  const over = evidence.overAt(duplicate.n)
  if (over === undefined) return false
  const known = [over, ...evidence.faultsBetween(over, over + LAG_MS).map(({ to }) => to)]
  return Math.max(...known) + LAG_MS + evidence.stalledMs(over, at) >= at
}

/** An item that was stored while its original was buffered, and surely read then, goes out itself: wrong. */
function checkMissed(evidence: Evidence, seals: Seals, item: SentItem): Violation[] {
  const { answer } = item
  if (evidence.lastSeen(item.n) === undefined || answer?.status !== 202) return []
  const { at } = answer
  const original = evidence.duplicatesOf(item).find((duplicate) => {
    const stored = duplicate.answer?.status === 202 && duplicate.answer.at <= item.sentAt
    return (
      stored && (wasReadBefore(evidence, seals, duplicate, at) || wasBufferedLong(evidence, duplicate, at))
    )
  })
  return original ? [{ rule: 'duplicate-missed', detail: { item, original } }] : []
}

/**
 * Owners read a log in its order. Whatever was sent behind the answer at `since` stands behind that item in the log; when
 * it is sealed before the record that the original is over, the item was read before that record, too.
 */
function wasReadBefore(evidence: Evidence, seals: Seals, original: SentItem, since: number): boolean {
  const key = evidence.keyOf(original.n)
  const settlement = key === undefined ? undefined : evidence.settlement(key)
  return settlement !== undefined && seals.latestBefore(key!, settlement.seq) >= since
}

/** The original went out long after the answer at `since`, or again, and nothing kept its owner from reading. */
function wasBufferedLong(evidence: Evidence, { n }: SentItem, since: number): boolean {
  const [first, last] = [evidence.firstSeen(n), evidence.lastSeen(n)]
  if (first === undefined || last === undefined) return false
  const soon = since + LAG_MS + evidence.stalledMs(since, last) + hiddenMs(evidence, since, last)
  const faulty = evidence.faultsBetween(since, last).some((fault) => !isOnTheWay(fault))
  return first > soon || (last > soon && !faulty)
}

/** So long between these times no owner may have had anything to read, ms. */
function hiddenMs(evidence: Evidence, from: number, to: number): number {
  const hiding = evidence.faultsBetween(from, to).filter(hidesItems)
  return hiding.reduce((sum, fault) => sum + Math.min(fault.to, to) - Math.max(fault.from, from), 0)
}

/** When the latest item of all batches of a shard, up to a place in its journal, was sent. */
class Seals {
  readonly #evidence: Evidence
  readonly #ofShards = new Map<number, { version: number; sentAt: number }[]>()

  constructor(evidence: Evidence) {
    this.#evidence = evidence
    const firsts = new Map(evidence.batches.map((batch) => [batch.key, batch]))
    const inOrder = [...firsts.values()].sort((one, other) => versionOf(one) - versionOf(other))
    for (const { key, items } of inOrder) {
      const shard = this.#evidence.shardOf(key)
      if (shard === undefined) continue
      const seals = this.#ofShards.get(shard) ?? []
      this.#ofShards.set(shard, seals)
      const times = items.map(({ n }) => evidence.sent(n)?.sentAt ?? 0)
      seals.push({ version: versionOf({ key }), sentAt: Math.max(seals.at(-1)?.sentAt ?? 0, ...times) })
    }
  }

  /** Unix ms; 0: none. */
  latestBefore(key: string, seq: number): number {
    const seals = this.#ofShards.get(this.#evidence.shardOf(key) ?? -1) ?? []
    return seals.findLast(({ version }) => version < seq)?.sentAt ?? 0
  }
}

function checkWithinBatches(evidence: Evidence): Violation[] {
  return evidence.batches.flatMap(({ key, items }) => {
    const ids = items.flatMap(({ n }) => evidence.sent(n)?.messageId ?? [])
    return new Set(ids).size < ids.length ? [{ rule: 'duplicate-missed', detail: key }] : []
  })
}
