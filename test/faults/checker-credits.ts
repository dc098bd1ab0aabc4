/**
 * Credits (docs/architecture/protocol.md, "Credits"): charged is what was accepted and is no duplicate; a fault gives
 * away at most what was in flight at it, and never costs a credit.
 */
import { cutsCharges } from './causes.ts'
import type { Evidence, Violation } from './evidence.ts'
import type { SentItem } from './history.ts'

/** A charge is settled within this after its answer, ms (about a second at rest; the rest is for a busy machine). */
const UNSETTLED_MS = 3_000

export function checkCredits(evidence: Evidence): Violation[] {
  const { credits, sent } = evidence.history
  if (!credits) return []
  const accepted = sent.filter(({ n }) => evidence.lastSeen(n) !== undefined)
  const most = sum(accepted)
  const least = most - sum(accepted.filter((item) => wasInFlight(evidence, item)))
  const charged = credits.granted - credits.left
  if (charged > most) return [{ rule: 'overcharged', detail: { charged, most } }]
  return charged < least ? [{ rule: 'undercharged', detail: { charged, least } }] : []
}

/** Nobody was told that it is stored, or a fault came before its charge was settled. */
function wasInFlight(evidence: Evidence, { answer, sentAt, messageId }: SentItem): boolean {
  if (answer?.status !== 202) return true
  // Whoever waits for a verdict in vain is answered without it, also for a while after the fault.
  const explicit = messageId !== null
  const faults = evidence.faultsBetween(sentAt - (explicit ? UNSETTLED_MS : 0), answer.at + UNSETTLED_MS)
  return faults.some((fault) => cutsCharges(fault, explicit))
}

function sum(items: readonly SentItem[]): number {
  return items.reduce((total, { credits }) => total + credits, 0)
}
