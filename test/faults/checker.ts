/**
 * Judges the history of a fault run (docs/reference/guarantees.md): pure, and tested
 * itself with histories that each break one rule. It is asked after the faults are over and everything is
 * drained.
 */
import { cutsDeliveries } from './causes.ts'
import { checkCredits } from './checker-credits.ts'
import { checkDuplicates } from './checker-duplicates.ts'
import { Evidence, type Violation } from './evidence.ts'
import type { Batch, BatchItem, Delivery, History } from './history.ts'

/** What an owner has not committed so long after the answer that decides it, ms, is late without a fault. */
const SETTLE_MS = 5_000
/** What was held back arrives so long after its release, on a busy machine, ms. */
const ARRIVAL_MS = 2_000

/** A promise of docs/reference/guarantees.md, in its words, and what holds a history against it. */
export interface Rule {
  readonly promise: string
  readonly check: (evidence: Evidence) => Violation[]
}

export const RULES: readonly Rule[] = [
  {
    promise:
      'Every item answered 202 is delivered, is in the dead letter queue, or is a dropped duplicate of an item that is',
    check: checkLost,
  },
  { promise: 'Nothing stays buffered once destinations answer and faults are over', check: checkBuffered },
  {
    promise:
      'Nothing is invented: each item of a batch was sent to this buffer and group with these bytes, was not refused, and is in the batch once',
    check: checkInvented,
  },
  {
    promise: 'An idempotency key always names the same body, and an item always stays under one key',
    check: checkBodies,
  },
  {
    promise:
      'A batch that was answered 2xx is sent again only when a fault cut off the record of that answer; a dead letter is not sent again',
    check: checkResent,
  },
  {
    promise:
      'A batch is attempted at most `maxAttempts` times, and once more for each fault that cut an attempt off',
    check: checkAttempts,
  },
  {
    promise:
      'The batches of a group go out in the order of their versions, and its items in the order in which they were stored',
    check: checkOrder,
  },
  {
    promise:
      'A duplicate (same explicit id, same group) is dropped while its original is buffered, and only then; an item answered `duplicate` is never sent itself, and its original is',
    check: checkDuplicates,
  },
  {
    promise:
      'Items that go out are charged, duplicates are not; a fault never costs a credit, and gives away at most what was in flight',
    check: checkCredits,
  },
  {
    promise: 'After a claim of a shard, only the claimant writes into its journal',
    check: checkFencing,
  },
]

/** Every breach found; none: the history holds. */
export function check(history: History): Violation[] {
  const evidence = new Evidence(history)
  return RULES.flatMap((rule) => rule.check(evidence))
}

function checkLost(evidence: Evidence): Violation[] {
  return evidence.history.sent.flatMap((item) => {
    if (item.answer?.status !== 202 || evidence.settled(item.n)) return []
    const byDuplicate = evidence.duplicatesOf(item).some((duplicate) => evidence.settled(duplicate.n))
    return byDuplicate ? [] : [{ rule: 'lost', detail: item }]
  })
}

function checkBuffered({ history }: Evidence): Violation[] {
  return history.buffered === 0 ? [] : [{ rule: 'left-buffered', detail: history.buffered }]
}

function checkInvented(evidence: Evidence): Violation[] {
  return evidence.batches.flatMap((batch) => {
    const strange = batch.items.filter((item) => !isAsSent(evidence, batch, item))
    const repeated = batch.items.length - new Set(batch.items.map(({ n }) => n)).size
    if (strange.length === 0 && repeated === 0) return []
    return [{ rule: 'invented', detail: { batch: batch.key, repeated, strange } }]
  })
}

function isAsSent(evidence: Evidence, batch: Batch, item: BatchItem): boolean {
  const sent = evidence.sent(item.n)
  if (sent?.answer && sent.answer.status >= 400 && sent.answer.status < 500) return false
  const ownId = sent?.messageId ?? sent?.answer?.itemId ?? item.messageId
  return (
    sent?.bufferId === batch.bufferId &&
    sent.groupKey === batch.groupKey &&
    sent.payloadHash === item.payloadHash &&
    item.messageId === ownId
  )
}

function checkBodies(evidence: Evidence): Violation[] {
  const bodies = new Map<string, string>()
  const keys = new Map<number, string>()
  const violations: Violation[] = []
  for (const { key, bodyHash, items } of evidence.batches) {
    if ((bodies.get(key) ?? bodyHash) !== bodyHash) violations.push({ rule: 'two-bodies', detail: key })
    bodies.set(key, bodyHash)
    for (const { n } of items) {
      const first = keys.get(n) ?? key
      if (first !== key) violations.push({ rule: 'two-keys', detail: { n, keys: [first, key] } })
      keys.set(n, first)
    }
  }
  return violations
}

function checkResent(evidence: Evidence): Violation[] {
  const { history } = evidence
  const again = [...evidence.attempts.values()].flatMap((attempts) =>
    attempts.slice(1).flatMap((next, index) => {
      const before = attempts[index]!
      const final = before.status >= 200 && before.status < 300
      return final && !excused(evidence, before, next)
        ? [{ rule: 'resent', detail: { before, next: next.at } }]
        : []
    }),
  )
  const afterDeath = history.dead.flatMap(({ key, createdAt }) => {
    const late = (evidence.attempts.get(key) ?? []).find(
      (attempt) => attempt.at > createdAt && !heldBack(evidence, attempt, createdAt),
    )
    return late ? [{ rule: 'sent-after-dead', detail: { createdAt, late } }] : []
  })
  const acknowledged = history.dead.flatMap(({ key, createdAt }) => {
    const last = (evidence.attempts.get(key) ?? []).findLast(({ answeredAt }) => answeredAt <= createdAt)
    if (last === undefined || last.status < 200 || last.status >= 300) return []
    const cut = evidence.faultsBetween(last.at, last.answeredAt + SETTLE_MS).some(cutsDeliveries)
    return cut ? [] : [{ rule: 'dead-after-ack', detail: { createdAt, last } }]
  })
  return [...again, ...afterDeath, ...acknowledged]
}

/** Its sender stood still, or the network held it, while that happened at `since` which should have come after it. */
function heldBack({ history }: Evidence, { at }: Delivery, since: number): boolean {
  return history.faults.some(
    ({ from, heldUntil }) => heldUntil !== undefined && from <= since && at <= heldUntil + ARRIVAL_MS,
  )
}

function excused(evidence: Evidence, before: Delivery, next: Delivery): boolean {
  return evidence
    .faultsBetween(before.at, before.answeredAt + SETTLE_MS)
    .some((fault) => fault.from <= next.at && cutsDeliveries(fault))
}

function checkAttempts(evidence: Evidence): Violation[] {
  return [...evidence.attempts].flatMap(([key, attempts]) => {
    const faults = evidence.faultsBetween(attempts[0]!.at, attempts.at(-1)!.at)
    const most = evidence.history.maxAttempts + faults.filter(cutsDeliveries).length
    return attempts.length > most ? [{ rule: 'attempts', detail: { key, made: attempts.length, most } }] : []
  })
}

function checkOrder(evidence: Evidence): Violation[] {
  return [...evidence.deliveriesOfGroups.values()].flatMap((deliveries) => [
    ...descents(deliveries, versionOf)
      .filter((pair) => !isLateRepetition(evidence, ...pair))
      .map(([, { key }]) => ({ rule: 'batch-order', detail: key })),
    ...itemDescents(evidence, deliveries),
  ])
}

/** The order of first arrivals holds always. */
function isLateRepetition(evidence: Evidence, later: Delivery, delivery: Delivery): boolean {
  const [first] = evidence.attempts.get(delivery.key)!
  return first !== delivery && heldBack(evidence, delivery, later.at)
}

function itemDescents(evidence: Evidence, deliveries: readonly Delivery[]): Violation[] {
  const firsts = [...new Map(deliveries.toReversed().map((each) => [each.key, each])).values()].reverse()
  const items = firsts
    .toSorted((a, b) => versionOf(a) - versionOf(b))
    .flatMap(({ key, items }) => items.map(({ n }) => ({ n, key })))
    // Only what was answered before the next was sent has a known place in the log.
    .filter(({ n }) => evidence.sent(n)?.answer?.status === 202)
  return descents(items, ({ n }) => n).map(([, detail]) => ({ rule: 'item-order', detail }))
}

/** Neighbours of which the second ranks lower. */
function descents<T>(values: readonly T[], rank: (value: T) => number): [T, T][] {
  return values
    .slice(1)
    .map((value, index): [T, T] => [values[index]!, value])
    .filter(([before, value]) => rank(value) < rank(before))
}

/** The part of `grp:<groupId>:v<version>` that grows. */
export function versionOf({ key }: Pick<Batch, 'key'>): number {
  return Number(key.slice(key.lastIndexOf(':v') + 2))
}

function checkFencing({ history }: Evidence): Violation[] {
  const claims = new Map<number, { epoch: number; boot: string }>()
  const violations: Violation[] = []
  for (const commit of history.commits) {
    const { shard, seq, boot, epoch } = commit
    const claim = claims.get(shard)
    if (commit.records.includes('epoch')) claims.set(shard, { epoch: seq, boot })
    else if (claim && (claim.epoch !== epoch || claim.boot !== boot))
      violations.push({ rule: 'stale-owner', detail: { commit, claim } })
  }
  return violations
}
