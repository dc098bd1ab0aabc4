/** Deduplication (docs/reference/buffers.md, "Deduplication"): exact while the original is buffered, and only then. */
import type { Evidence, Violation } from './evidence.ts'
import type { SentItem } from './history.ts'

/** An owner reads what is stored, and commits what is answered, well within this without a fault, ms. */
const LAG_MS = 5_000

export function checkDuplicates(evidence: Evidence): Violation[] {
  return [
    ...evidence.history.sent.flatMap((item) => checkTold(evidence, item)),
    ...evidence.history.sent.flatMap((item) => checkMissed(evidence, item)),
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
  return Math.max(...known) + LAG_MS >= at
}

/** An item stored while its duplicate was buffered, and read long before that one went out, goes out itself: wrong. */
function checkMissed(evidence: Evidence, item: SentItem): Violation[] {
  const { answer } = item
  if (evidence.lastSeen(item.n) === undefined || answer?.status !== 202) return []
  const original = evidence.duplicatesOf(item).find((duplicate) => {
    const first = evidence.firstSeen(duplicate.n)
    const stored = duplicate.answer?.status === 202 && duplicate.answer.at <= item.sentAt
    return stored && first !== undefined && first > answer.at + LAG_MS
  })
  return original ? [{ rule: 'duplicate-missed', detail: { item, original } }] : []
}

function checkWithinBatches(evidence: Evidence): Violation[] {
  return evidence.batches.flatMap(({ key, items }) => {
    const ids = items.flatMap(({ n }) => evidence.sent(n)?.messageId ?? [])
    return new Set(ids).size < ids.length ? [{ rule: 'duplicate-missed', detail: key }] : []
  })
}
