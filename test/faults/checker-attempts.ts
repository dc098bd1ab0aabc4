/** How often a batch is attempted, and how soon again (docs/reference/buffers.md, "Retries"). */
import { isOnTheWay } from './causes.ts'
import type { Evidence, Violation } from './evidence.ts'
import type { Delivery } from './history.ts'
import type { BufferTerms } from './terms.ts'

/** Timers and clocks of two processes of one machine differ by less, ms. */
const CLOCKS_MS = 50

export function checkAttempts(evidence: Evidence): Violation[] {
  return [...evidence.attempts].flatMap(([key, attempts]) => {
    const [first, last] = [attempts[0]!, attempts.at(-1)!]
    const terms = evidence.told.between(first.bufferId, first.at, last.at)
    const most = Math.max(...terms.map(({ maxAttempts }) => maxAttempts)) + cutOff(evidence, first, last)
    return attempts.length > most ? [{ rule: 'attempts', detail: { key, made: attempts.length, most } }] : []
  })
}

/**
 * Attempts that do not count, for their owner did not live to count them: one a fault of an owner, and one a claim. What
 * fails on the way to the destination counts.
 */
function cutOff(evidence: Evidence, first: Delivery, last: Delivery): number {
  const faults = evidence
    .cutsOf(first.key, evidence.sentFrom(first), last.at)
    .filter((fault) => !isOnTheWay(fault))
  return Math.min(faults.length, evidence.claimsSinceSeal(first.key, last.at) ?? faults.length)
}

export function checkBackoff(evidence: Evidence): Violation[] {
  return [...evidence.attempts.values()].flatMap((attempts) =>
    attempts.slice(1).flatMap((next, index) => {
      const before = attempts[index]!
      if (!failedByAnswer(evidence, before, next)) return []
      const waited = next.at - before.answeredAt
      const least = leastDelay(evidence, attempts, index) - CLOCKS_MS
      return waited < least ? [{ rule: 'back-off', detail: { before, next: next.at, waited, least } }] : []
    }),
  )
}

/** By one that its owner surely had. */
function failedByAnswer(evidence: Evidence, before: Delivery, next: Delivery): boolean {
  if (before.status < 500 || evidence.wasGivenUp(before) || evidence.wasGivenUp(next)) return false
  return evidence.cutsOf(next.key, evidence.sentFrom(before), next.at).length === 0
}

/** Before the attempt behind this one, ms. */
function leastDelay(evidence: Evidence, attempts: readonly Delivery[], index: number): number {
  const [before, next] = [attempts[index]!, attempts[index + 1]!]
  // A repetition of what was cut off has the number of the attempt before it.
  const repeated = cutOff(evidence, attempts[0]!, before)
  const terms = evidence.told.between(next.bufferId, before.at, next.at)
  return Math.min(...terms.map((each) => delayOf(each, Math.max(1, index + 1 - repeated))))
}

/** Before retry `n`, ms. */
function delayOf({ backoff: { initialMs, maxMs, multiplier } }: BufferTerms, n: number): number {
  return Math.min(maxMs, Math.round(initialMs * multiplier ** (n - 1)))
}
