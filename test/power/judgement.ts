/**
 * What still holds when a broker without sync `always` lost its power (docs/reference/guarantees.md, "Power cuts"): all of
 * the rules, but for what it acknowledged in the last interval, and for keys and order after a repair. Pure.
 */
import { check } from '../faults/checker.ts'
import { Evidence, type Violation } from '../faults/evidence.ts'
import type { Fault, History, SentItem } from '../faults/history.ts'

/**
 * What a repair appends again may go out twice, also in one batch, and stands behind what came meanwhile
 * (docs/architecture/repair.md).
 */
const GIVEN_UP = new Set(['two-keys', 'batch-order', 'item-order'])
/** A sync is so late on a machine that is emulated, ms. */
const LATE_MS = 5_000

/** The clock of a guest begins at a whole second, so it is behind that of the host by up to one, and drifts, ms. */
const BEHIND_MS = 2_000

/** An acknowledgement that a cut may have taken back. */
export interface Withdrawn {
  readonly item: SentItem
  readonly answer: NonNullable<SentItem['answer']>
  /** From the answer to the cut, ms. */
  readonly ageMs: number
}

/** A fault that begins where the interval before it did: what was stored, sent or settled since may be gone. */
export interface PowerCut extends Fault {
  /** Of the cut itself. */
  readonly at: number
}

/** `intervalMs`: between two syncs; 0: each message is synced. */
export function cutOf(kind: string, at: number, intervalMs: number): PowerCut {
  return { kind, at, from: intervalMs === 0 ? at : at - intervalMs - LATE_MS, to: Number.POSITIVE_INFINITY }
}

/**
 * From now on the history knows no answer to what was accepted in the interval before the cut. An answer may come behind the
 * cut to what was stored before it: whoever sends an id waits for a verdict meanwhile.
 */
export function withdraw(history: History, { at, from }: PowerCut): Withdrawn[] {
  return history.sent.flatMap((item) => {
    const { answer, sentAt } = item
    if (answer?.status !== 202 || sentAt > at || answer.at < from) return []
    item.answer = null
    return [{ item, answer, ageMs: Math.max(0, at - answer.at) }]
  })
}

/** Those of which neither the item nor a duplicate came out. */
export function lostOf(history: History, withdrawn: readonly Withdrawn[]): Withdrawn[] {
  const evidence = new Evidence(history)
  return withdrawn.filter(
    ({ item }) => ![item, ...evidence.duplicatesOf(item)].some(({ n }) => evidence.settled(n)),
  )
}

/** With the latest times, by the clock of the host, at which a broker in a machine may have stored what the journals hold. */
export function onHostClock(history: History): History {
  const commits = history.commits.map((commit) => ({ ...commit, at: commit.at + BEHIND_MS }))
  return { ...history, commits }
}

/**
 * `check`, without what a repair gives up. What is lost stays charged: nobody knows any more that it was there, also not
 * when the same id comes again and is charged as a new item.
 */
export function checkRepaired(history: History, withdrawn: readonly Withdrawn[] = []): Violation[] {
  const evidence = new Evidence(history)
  const paid = withdrawn.reduce((sum, { item }) => sum + (evidence.settled(item.n) ? 0 : item.credits), 0)
  return check(history).filter(({ rule, detail }) => {
    if (rule === 'duplicate-missed') return !isFreedByCut(history, evidence, detail)
    if (rule === 'invented') return !isAgainBehindCut(history, detail as Invented)
    if (rule !== 'overcharged') return !GIVEN_UP.has(rule)
    const { charged, most } = detail as { charged: number; most: number }
    return charged - most > paid
  })
}

/**
 * A repair appends whole packs once more, also items of them that were dropped, and behind what came meanwhile. So a duplicate
 * may go out after all when a cut lies between the two and its delivery. Both in one batch are never forgiven.
 */
function isFreedByCut(history: History, evidence: Evidence, detail: unknown): boolean {
  if (typeof detail === 'string') return false
  const { item, original } = detail as { item: SentItem; original: SentItem }
  const since = Math.min(item.sentAt, original.sentAt)
  const until = evidence.lastSeen(item.n) ?? since
  return cutsOf(history).some((cut) => since <= cut && cut <= until)
}

function cutsOf({ faults }: History): number[] {
  return faults.flatMap((fault) => ('at' in fault ? [fault.at as number] : []))
}

interface Invented {
  readonly batch: string
  readonly strange: readonly unknown[]
}

/** Nothing is wrong with the batch but items that it holds twice, each sent before a cut that the batch came behind. */
function isAgainBehindCut(history: History, { batch: key, strange }: Invented): boolean {
  if (strange.length > 0) return false
  const sent = history.deliveries.filter((each) => each.key === key)
  const cuts = cutsOf(history)
  return sent.every(({ at, items }) => {
    const twice = items.filter(({ n }, index) => items.findIndex((each) => each.n === n) < index)
    return twice.every(({ n }) => {
      const sentAt = history.sent.find((item) => item.n === n)?.sentAt ?? at
      return cuts.some((cut) => sentAt <= cut && cut <= at)
    })
  })
}
