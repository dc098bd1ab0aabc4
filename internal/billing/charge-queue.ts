/**
 * The credits of one customer on this node: charges that wait for the next statement, and what the last
 * answers allow. No clock and no IO; `ledger.ts` drives it.
 *
 * Invariant: every charge is answered exactly once, and one that was answered "unavailable" and turns out
 * to be paid is credited back.
 */

import { Advance, type AdvanceReport } from './advance.ts'
import type { CreditAnswer, CreditStatement } from './ports.ts'

/** Charges of one statement at most: what piled up in an outage does not go out in one piece. */
const MAX_CHARGES = 10_000

/** How long a charge waits for what other nodes hold in advance, and before it asks again, ms. */
const OTHERS_MS = 500
const PAUSE_MS = 20

export type ChargeAnswer = { paid: true } | { paid: false; balance: number }

export interface PendingCharge {
  readonly bufferUid: string
  readonly credits: number
  /** Arrival, monotonic ms. */
  readonly since: number
  readonly answer: (answer: ChargeAnswer) => void
  readonly fail: (error: Error) => void
  /** Answered "unavailable" before its outcome was known. */
  givenUp: boolean
}

/** A statement that waits for its answer. */
export interface Flight {
  readonly statement: CreditStatement
  readonly charges: readonly PendingCharge[]
  /** `raises` at its start: an answer that is older than a rise of the balance forbids nothing. */
  readonly raises: number
}

export const PAID: ChargeAnswer = { paid: true }

export class ChargeQueue {
  readonly customerId: string
  readonly #advance = new Advance()
  /** Being worked on by the ledger. */
  running: Promise<void> | null = null
  flight: Flight | null = null
  #number = 0
  #waiting: PendingCharge[] = []
  #settled = 0
  /** Since when `settled` is not zero, monotonic ms. */
  #settledSince = 0
  #refunds = new Map<string, { credits: number; items: number }>()
  #raises = 0
  #hurried = false
  #pausedUntil = 0
  #refusal: { balance: number; until: number } | null = null

  constructor(customerId: string) {
    this.customerId = customerId
  }

  /** The balance that certainly does not pay `credits`, undefined when Postgres has to be asked. */
  refuses(credits: number, now: number): number | undefined {
    if (this.#refusal === null) return undefined
    if (now >= this.#refusal.until) this.#refusal = null
    return this.#refusal !== null && credits > this.#refusal.balance ? this.#refusal.balance : undefined
  }

  /** Pays at once from what is held in advance, or answers false. Nobody is overtaken. */
  pays(bufferUid: string, credits: number, now: number): boolean {
    this.#advance.see(credits, now)
    return this.#waiting.length === 0 && this.#advance.spend(bufferUid, credits, now)
  }

  add(charge: PendingCharge): void {
    this.#waiting.push(charge)
  }

  /** What was spent in advance is reported with the next statement, whatever its age. */
  hurry(): void {
    this.#hurried = this.#advance.unreported
  }

  /** Whether charges were paid that Postgres does not know of. */
  get unreported(): boolean {
    return this.#advance.unreported || this.flight !== null
  }

  settle(credits: number, now: number): void {
    if (this.#settled === 0) this.#settledSince = now
    this.#settled += credits
  }

  refund(bufferUid: string, credits: number): void {
    const known = this.#refunds.get(bufferUid)
    if (known === undefined) this.#refunds.set(bufferUid, { credits, items: 1 })
    else {
      known.credits += credits
      known.items += 1
    }
    this.raised()
  }

  /** The balance has grown: no refusal of before holds. */
  raised(): void {
    this.#raises += 1
    this.#refusal = null
  }

  /** Whether a statement is due; settlements alone wait until they are `settleMs` old. */
  due(now: number, settleMs: number): boolean {
    if (this.#waiting.length > 0 && now >= this.#pausedUntil) return true
    if (this.#hurried || this.#advance.due(now)) return true
    // Under load what comes back rides with the next report.
    if (this.#refunds.size > 0 && !this.#advance.active) return true
    return this.#settled > 0 && now - this.#settledSince >= settleMs
  }

  get idle(): boolean {
    return this.flight === null && !this.#advance.active && !this.due(Number.POSITIVE_INFINITY, 0)
  }

  /** Takes what waits into the next statement. The last one must have been answered. `ending`: nothing stays held. */
  takeOff(now: number, ending = false): Flight {
    if (this.flight !== null) throw new Error(`a statement of ${this.customerId} is in flight`)
    const charges = this.#waiting.splice(0, MAX_CHARGES)
    this.#number += 1
    this.#hurried = false
    const advance = this.#advance.report(now, { short: charges.length > 0, ending })
    const statement = compose(this.customerId, this.#number, charges, this.#refunds, this.#settled, advance)
    this.#refunds = new Map()
    this.#settled = 0
    this.flight = { statement, charges, raises: this.#raises }
    return this.flight
  }

  /**
   * Hands out the answer. Charges behind the first refused one that could still be paid wait again; so do those
   * that could be paid from what other nodes hold in advance, for a while: it comes back when the balance is low.
   */
  land(answer: CreditAnswer, now: number, refusalMs: number): void {
    const flight = this.flight
    if (flight === null) throw new Error(`no statement of ${this.customerId} is in flight`)
    this.flight = null
    this.#advance.grant(answer.taken, answer.balance)
    const again: PendingCharge[] = []
    let refused = false
    for (const [index, charge] of flight.charges.entries()) {
      if (index < answer.granted) {
        if (charge.givenUp) this.refund(charge.bufferUid, charge.credits)
        else charge.answer(PAID)
      } else if (!charge.givenUp) {
        if (charge.credits <= answer.balance || this.#awaitsOthers(charge, answer, now)) again.push(charge)
        else {
          charge.answer({ paid: false, balance: answer.balance })
          refused = true
        }
      }
    }
    if (again.length > 0) this.#waiting = [...again, ...this.#waiting]
    if (refused && flight.raises === this.#raises) {
      this.#refusal = { balance: answer.balance, until: now + refusalMs }
    }
  }

  #awaitsOthers(charge: PendingCharge, answer: CreditAnswer, now: number): boolean {
    const payable = charge.credits <= answer.balance + answer.heldByOthers
    if (!payable || now - charge.since > OTHERS_MS) return false
    this.#pausedUntil = now + PAUSE_MS
    return true
  }

  /** Answers "unavailable" to every charge that arrived at `before` or earlier. */
  giveUp(before: number, error: () => Error): void {
    for (const charge of this.flight?.charges ?? []) {
      if (charge.since > before) break
      if (!charge.givenUp) charge.fail(error())
      charge.givenUp = true
    }
    let expired = 0
    for (const charge of this.#waiting) {
      if (charge.since > before) break
      charge.fail(error())
      expired++
    }
    if (expired > 0) this.#waiting = this.#waiting.slice(expired)
  }
}

/** What is sent again once nobody waits for the charges any more: they are not paid late. */
export function withoutCharges(statement: CreditStatement): CreditStatement {
  return { ...statement, runs: { buffer: [], credits: [], count: [] } }
}

function compose(
  customerId: string,
  number: number,
  charges: readonly PendingCharge[],
  refunds: ReadonlyMap<string, { credits: number; items: number }>,
  settled: number,
  advance: AdvanceReport,
): CreditStatement {
  const index = new Map<string, number>()
  const indexOf = (uid: string): number => {
    const known = index.get(uid)
    if (known !== undefined) return known
    index.set(uid, index.size + 1)
    return index.size
  }
  const runs = runsOf(charges, indexOf)
  for (const uid of refunds.keys()) indexOf(uid)
  for (const uid of advance.spent.keys()) indexOf(uid)
  const buffers = [...index.keys()]
  return {
    customerId,
    number,
    buffers,
    runs,
    refunds: {
      credits: buffers.map((uid) => refunds.get(uid)?.credits ?? 0),
      items: buffers.map((uid) => refunds.get(uid)?.items ?? 0),
    },
    spent: {
      credits: buffers.map((uid) => advance.spent.get(uid)?.credits ?? 0),
      items: buffers.map((uid) => advance.spent.get(uid)?.items ?? 0),
    },
    settled,
    giveBack: advance.giveBack,
    take: advance.take,
  }
}

function runsOf(
  charges: readonly PendingCharge[],
  indexOf: (uid: string) => number,
): CreditStatement['runs'] {
  const runs = { buffer: [] as number[], credits: [] as number[], count: [] as number[] }
  let previous: PendingCharge | undefined
  for (const charge of charges) {
    const last = runs.count.length - 1
    if (previous?.bufferUid === charge.bufferUid && previous.credits === charge.credits) {
      runs.count[last] = (runs.count[last] ?? 0) + 1
    } else {
      runs.buffer.push(indexOf(charge.bufferUid))
      runs.credits.push(charge.credits)
      runs.count.push(1)
    }
    previous = charge
  }
  return runs
}
