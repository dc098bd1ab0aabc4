/**
 * Credits by group commit (docs/architecture/protocol.md, "Credits"): one statement in flight a customer and node,
 * concurrent charges join the next one. Implements the `Ledger` port of ingest.
 *
 * Invariant: a statement is repeated under its number until it is answered, so each is applied exactly
 * once, whatever happens to connections; what was charged and neither settled nor refunded stands in
 * Postgres as unsettled and comes back when the node is gone.
 */

import type { Clock } from '../runtime/clock.ts'
import { REPORT_MS } from './advance.ts'
import { type ChargeAnswer, ChargeQueue, type Flight, PAID, withoutCharges } from './charge-queue.ts'
import type { CreditAnswer, CreditStatements } from './ports.ts'

export interface LedgerCharge {
  readonly customerId: string
  readonly bufferUid: string
  /** At least 1. */
  readonly credits: number
}

export interface LedgerOptions {
  /** Of this run of the process. Its lease must stand before the first charge. */
  boot: string
  statements: CreditStatements
  clock: Clock
  /** Makes the error of a charge that Postgres did not answer: `LedgerUnavailableError` of ingest. */
  unavailable: (message: string, cause: unknown) => Error
  /** This node was taken for gone and its credits refunded: the process must exit. Called once. */
  onClosed: () => void
  /** A statement failed and will be repeated. */
  onProblem: (error: unknown) => void
  /** A charge is answered "unavailable" after this long, ms. Default 2,000. */
  patienceMs?: number
  /** Settlements alone wait this long for a charge to ride with, ms. Default 500. */
  settleMs?: number
  /** How long a refusal stands without asking again, ms. Default 20. */
  refusalMs?: number
}

/** Round of the only timer, ms: charges expire and settlements leave up to this much late. */
const ROUND_MS = REPORT_MS
/** How long a reader of the balance waits for a report, ms: a database that is away fails its own read. */
const REPORT_PATIENCE_MS = 1_000
/** Pauses between repetitions of a statement, ms. */
const FIRST_PAUSE_MS = 20
const MAX_PAUSE_MS = 500

export class CreditLedger {
  readonly #options: LedgerOptions
  readonly #patienceMs: number
  readonly #settleMs: number
  readonly #refusalMs: number
  readonly #queues = new Map<string, ChargeQueue>()
  /** Queues with something to do or to wait for. */
  readonly #busy = new Set<ChargeQueue>()
  #cancelRound: (() => void) | null = null
  #opening: Promise<void> | null = null
  #lastFailure: unknown
  #state: 'open' | 'closing' | 'closed' = 'open'

  constructor(options: LedgerOptions) {
    this.#options = options
    this.#patienceMs = options.patienceMs ?? 2_000
    this.#settleMs = options.settleMs ?? 500
    this.#refusalMs = options.refusalMs ?? 20
  }

  /**
   * Makes this node known to Postgres ahead of its first charge, which would wait for that and a connection with the patience of
   * one statement. Never rejects: the charge tries again.
   */
  async open(): Promise<void> {
    await this.#opened().catch(this.#options.onProblem)
  }

  /**
   * Resolves `paid: false` with the balance when that is below `credits`. Rejects within `patienceMs` plus
   * a round when Postgres cannot tell: then nothing is charged, or it is credited back by itself.
   */
  charge(charge: LedgerCharge): ChargeAnswer | Promise<ChargeAnswer> {
    if (this.#state !== 'open') return Promise.reject(this.#unavailable('this node takes no more charges'))
    if (!(Number.isSafeInteger(charge.credits) && charge.credits > 0)) {
      throw new RangeError(`credits must be a positive integer: ${charge.credits}`)
    }
    const queue = this.#queueOf(charge.customerId)
    const now = this.#options.clock.monotonic()
    if (queue.pays(charge.bufferUid, charge.credits, now)) {
      if (queue.due(now, this.#settleMs)) this.#work(queue)
      else this.#watch(queue)
      return PAID
    }
    const balance = queue.refuses(charge.credits, now)
    if (balance !== undefined) return { paid: false, balance }
    return new Promise((answer, fail) => {
      const { bufferUid, credits } = charge
      queue.add({ bufferUid, credits, since: now, answer, fail, givenUp: false })
      this.#work(queue)
    })
  }

  /** The item is stored for good: its credits are spent. */
  settle(charge: LedgerCharge): void {
    const queue = this.#queueOf(charge.customerId)
    queue.settle(charge.credits, this.#options.clock.monotonic())
    this.#watch(queue)
  }

  /** The item is a duplicate or was not stored: its credits come back with the next statement. */
  refund(charge: LedgerCharge): void {
    const queue = this.#queueOf(charge.customerId)
    queue.refund(charge.bufferUid, charge.credits)
    this.#work(queue)
  }

  /** The balance was raised elsewhere (a grant, a purchase): what was refused may be payable now. */
  credited(customerId: string): void {
    this.#queues.get(customerId)?.raised()
  }

  /** Resolves once Postgres knows of every charge that was paid before, or after a second. */
  async reported(customerId: string): Promise<void> {
    const queue = this.#queues.get(customerId)
    if (queue === undefined || !queue.unreported) return
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const cancel = this.#options.clock.after(REPORT_PATIENCE_MS, resolve)
    queue.hurry()
    await Promise.race([this.#work(queue), late])
    cancel()
  }

  /**
   * Takes no more charges, sends what waits, refunds what is neither settled nor refunded and removes the
   * node's rows. Rejects when Postgres is away: another node closes this one later.
   */
  async close(timeoutMs = 5_000): Promise<void> {
    if (this.#state !== 'open') return
    this.#state = 'closing'
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const cancel = this.#options.clock.after(timeoutMs, resolve)
    await Promise.race([this.#drain(), late])
    cancel()
    this.#stop('the ledger is closed')
    if (this.#opening !== null) await this.#options.statements.close(this.#options.boot)
  }

  async #drain(): Promise<void> {
    for (const queue of this.#busy) {
      while (this.#state === 'closing' && !queue.idle) await this.#work(queue)
    }
  }

  /** Ends everything; nobody is left waiting. */
  #stop(reason: string): void {
    this.#state = 'closed'
    this.#cancelRound?.()
    this.#cancelRound = null
    for (const queue of this.#busy) queue.giveUp(Number.POSITIVE_INFINITY, () => this.#unavailable(reason))
  }

  #queueOf(customerId: string): ChargeQueue {
    let queue = this.#queues.get(customerId)
    if (queue === undefined) {
      queue = new ChargeQueue(customerId)
      this.#queues.set(customerId, queue)
    }
    return queue
  }

  #watch(queue: ChargeQueue): void {
    this.#busy.add(queue)
    if (this.#state === 'open') this.#cancelRound ??= this.#options.clock.after(ROUND_MS, () => this.#round())
  }

  #round(): void {
    this.#cancelRound = null
    const now = this.#options.clock.monotonic()
    const late = () => this.#unavailable(`no answer within ${this.#patienceMs} ms`)
    for (const queue of this.#busy) {
      queue.giveUp(now - this.#patienceMs, late)
      if (queue.due(now, this.#settleMs)) this.#work(queue)
      else if (queue.idle) this.#busy.delete(queue)
    }
    const next = this.#busy.values().next().value
    if (next !== undefined) this.#watch(next)
  }

  /** Starts the queue's loop unless it runs; resolves when it has nothing more to send. */
  #work(queue: ChargeQueue): Promise<void> {
    this.#watch(queue)
    queue.running ??= this.#run(queue)
    return queue.running
  }

  async #run(queue: ChargeQueue): Promise<void> {
    try {
      // What arrives in this turn of the event loop shares the first statement.
      await Promise.resolve()
      while (this.#state !== 'closed' && this.#sendable(queue)) {
        const now = this.#options.clock.monotonic()
        const answer = await this.#applied(queue.takeOff(now, this.#state === 'closing'))
        if (answer === undefined) return
        if (!answer.open) return this.#closedByOthers()
        queue.land(answer, this.#options.clock.monotonic(), this.#refusalMs)
      }
    } finally {
      // In the same turn as the last look at the queue: what arrives next finds nobody at work.
      queue.running = null
    }
  }

  #sendable(queue: ChargeQueue): boolean {
    if (this.#state === 'closing') return !queue.idle
    return queue.due(this.#options.clock.monotonic(), this.#settleMs)
  }

  /** Repeats until there is an answer; undefined: the ledger was closed meanwhile. */
  async #applied(flight: Flight): Promise<CreditAnswer | undefined> {
    const { boot, statements } = this.#options
    for (let pause = FIRST_PAUSE_MS; this.#state !== 'closed'; pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
      try {
        await this.#opened()
        const unwanted = flight.charges.length > 0 && flight.charges.every((charge) => charge.givenUp)
        return await statements.apply(boot, unwanted ? withoutCharges(flight.statement) : flight.statement)
      } catch (error) {
        this.#lastFailure = error
        this.#options.onProblem(error)
        await this.#pause(pause)
      }
    }
    return undefined
  }

  #opened(): Promise<void> {
    this.#opening ??= this.#options.statements.open(this.#options.boot).catch((error: unknown) => {
      this.#opening = null
      throw error
    })
    return this.#opening
  }

  #closedByOthers(): void {
    if (this.#state === 'closed') return
    this.#stop('this node was closed by another')
    this.#opening = null
    this.#options.onClosed()
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.#options.clock.after(ms, resolve))
  }

  #unavailable(reason: string): Error {
    return this.#options.unavailable(`credits: ${reason}`, this.#lastFailure)
  }
}
