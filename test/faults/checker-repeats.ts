/** What is over is not sent again; the record that it is over may be cut off by a fault, and by nothing else. */
import { isOnTheWay, standsStill } from './causes.ts'
import type { Evidence, Violation } from './evidence.ts'
import type { Delivery, Fault } from './history.ts'

/** An attempt without an answer is given up after 10 s; less what it took to arrive, ms. */
const OVERDUE_MS = 9_000
/** Clocks of two processes of one machine differ by less, ms. */
const CLOCKS_MS = 50

export function checkResent(evidence: Evidence): Violation[] {
  return [...checkAgain(evidence), ...checkAfterDeath(evidence), ...checkDeadAfterAnswer(evidence)]
}

function isAcknowledged({ status }: Delivery): boolean {
  return status >= 200 && status < 300
}

function checkAgain(evidence: Evidence): Violation[] {
  return [...evidence.attempts.values()].flatMap((attempts) => {
    let takenOver = 0
    return attempts.slice(1).flatMap((next, index) => {
      const before = attempts[index]!
      if (!isAcknowledged(before)) return []
      const excuse = excuseFor(evidence, before, next, takenOver)
      if (excuse === 'taken over') takenOver++
      return excuse === null ? [{ rule: 'resent', detail: { before, next: next.at } }] : []
    })
  })
}

/**
 * Either one of the two was given up, or the answer did not come back, or its owner could not write it down and another one took the shard over, which
 * explains as many repetitions as there were claims. Nothing explains one behind the record.
 */
function excuseFor(
  evidence: Evidence,
  before: Delivery,
  next: Delivery,
  takenOver: number,
): 'unheard' | 'taken over' | null {
  if (evidence.wasGivenUp(next)) return 'unheard'
  const recordedAt = evidence.settlement(next.key)?.at ?? Number.POSITIVE_INFINITY
  if (next.at > recordedAt + CLOCKS_MS && !evidence.heldBack(next, recordedAt)) return null
  if (evidence.wasGivenUp(before)) return 'unheard'
  const cuts = evidence.cutsOf(next.key, evidence.sentFrom(before), next.at)
  if (cuts.length === 0) return null
  if (cuts.some((fault) => hidTheAnswer(evidence, fault, before, next))) return 'unheard'
  const claims = evidence.claimsSinceSeal(next.key, next.at)
  return claims === undefined || claims > takenOver ? 'taken over' : null
}

function hidTheAnswer(evidence: Evidence, fault: Fault, before: Delivery, next: Delivery): boolean {
  if (isOnTheWay(fault)) return true
  if (!standsStill(fault)) return false
  return next.at - before.at >= OVERDUE_MS || evidence.wasOverdueBehind(before, fault)
}

function checkAfterDeath(evidence: Evidence): Violation[] {
  return evidence.history.dead.flatMap(({ key, createdAt }) => {
    const late = (evidence.attempts.get(key) ?? []).find(
      (attempt) =>
        attempt.at > createdAt && !evidence.heldBack(attempt, createdAt) && !evidence.wasGivenUp(attempt),
    )
    return late ? [{ rule: 'sent-after-dead', detail: { createdAt, late } }] : []
  })
}

/** What its destination took becomes a dead letter only when the answer did not come back, and never once it is recorded. */
function checkDeadAfterAnswer(evidence: Evidence): Violation[] {
  return evidence.history.dead.flatMap(({ key, createdAt }): Violation[] => {
    const recordedAt = evidence.settlement(key)?.at ?? Number.POSITIVE_INFINITY
    if (createdAt > recordedAt + CLOCKS_MS) return [{ rule: 'dead-after-record', detail: { key, createdAt } }]
    const last = (evidence.attempts.get(key) ?? []).findLast(({ answeredAt }) => answeredAt <= createdAt)
    if (last === undefined || !isAcknowledged(last) || evidence.wasGivenUp(last)) return []
    const cut = evidence.cutsOf(key, last.at, createdAt).length > 0
    return cut ? [] : [{ rule: 'dead-after-ack', detail: { createdAt, last } }]
  })
}
