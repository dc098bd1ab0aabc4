/**
 * Credits (docs/architecture/protocol.md, "Credits"), item by item: what each one may have cost follows from its own answer,
 * from whether it went out, and from faults of its own node at its own time. The sums over the items of each buffer, and
 * over all, are then held against the accounts.
 */
import { cutsCharges, nodeOf } from './causes.ts'
import type { Evidence, Violation } from './evidence.ts'
import type { Accounts, SentItem } from './history.ts'

/** A charge is settled within this after its answer, ms (about a second at rest; the rest is for a busy machine). */
const UNSETTLED_MS = 3_000
/** A request without an answer is given up by its sender after this, ms. */
const UNANSWERED_MS = 25_000

/** What an item cost, in credits. */
interface Cost {
  readonly bufferId: string
  readonly least: number
  readonly most: number
  /** At most booked for its buffer; more than `most` when it came back with the ledger of a dead node. */
  readonly booked: number
}

export function checkCredits(evidence: Evidence): Violation[] {
  const { credits, sent } = evidence.history
  if (!credits) return []
  const costs = sent.map((item) => costOf(evidence, item))
  const charged = credits.granted - credits.left
  return [
    ...outside({}, charged, sum(costs, 'least'), sum(costs, 'most')),
    ...checkSums(credits),
    ...[...Map.groupBy(costs, ({ bufferId }) => bufferId)].flatMap(([bufferId, own]) =>
      outside({ bufferId }, credits.booked[bufferId] ?? 0, sum(own, 'least'), sum(own, 'booked')),
    ),
  ]
}

/** What was booked for buffers, less what was credited back to the customer, is what the customer paid. */
function checkSums({ granted, left, booked, refunded }: Accounts): Violation[] {
  const all = Object.values(booked).reduce((total, credits) => total + credits, 0)
  return all - refunded === granted - left
    ? []
    : [{ rule: 'sums', detail: { granted, left, booked, refunded } }]
}

function outside(of: object, charged: number, least: number, most: number): Violation[] {
  if (charged > most) return [{ rule: 'overcharged', detail: { ...of, charged, most } }]
  return charged < least ? [{ rule: 'undercharged', detail: { ...of, charged, least } }] : []
}

/** A duplicate, and what was refused or told to come again, costs nothing, whatever became of it. */
function costOf(evidence: Evidence, item: SentItem): Cost {
  const { bufferId, answer, credits, n } = item
  const isNew = (answer === null || answer.status === 202) && !answer?.duplicate
  const most = isNew && evidence.lastSeen(n) !== undefined ? credits : 0
  const inFlight = wasInFlight(evidence, item)
  return { bufferId, least: inFlight ? 0 : most, most, booked: inFlight ? credits : most }
}

/** A fault of the node that took it, of the broker or the database, came before its charge was settled. */
function wasInFlight(evidence: Evidence, item: SentItem): boolean {
  const { answer, sentAt, via } = item
  const explicit = item.messageId !== null
  // Whoever waits for a verdict in vain is answered without it, also for a while after the fault.
  const from = sentAt - (explicit ? UNSETTLED_MS : 0)
  const to = (answer?.at ?? sentAt + UNANSWERED_MS) + UNSETTLED_MS
  return evidence.faultsBetween(from, to + evidence.stalledMs(from, to)).some((fault) => {
    const node = nodeOf(fault)
    const elsewhere = node?.startsWith('ingress-') && via !== undefined && node !== via
    return !elsewhere && cutsCharges(fault, explicit)
  })
}

function sum(costs: readonly Cost[], which: 'least' | 'most' | 'booked'): number {
  return costs.reduce((total, cost) => total + cost[which], 0)
}
