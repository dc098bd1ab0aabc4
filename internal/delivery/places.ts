/**
 * Places of a process that several queues share, such as the attempts at once of all origins. Pure: it counts, and calls
 * `resume`.
 *
 * A customer may hold at most three times as many as are left free, and never more than `perCustomer`. One of its queues
 * may hold at most three times as many as the customer may still take. So while a few hold all they may, others find some
 * free, and where many do, what becomes free goes to those with little. Customers whose queues are held up take turns
 * for it, and so do the queues of one customer.
 */
import { SHARE_PER_FREE } from '../runtime/shared-budget.ts'
import { Ring } from './ring.ts'

export interface PlaceLimits {
  /** At least 1. */
  atOnce: number
  /** At least 1. */
  perCustomer: number
}

/** The turns of one customer in one queue. */
export interface Waiter {
  /** Those that run. */
  readonly running: number
  /** Called once, as soon as one may start and their turn has come. */
  resume(): void
}

class Holder {
  readonly name: string
  readonly parked = new Set<Waiter>()
  held = 0
  lined = false

  constructor(name: string) {
    this.name = name
  }

  get waits(): boolean {
    return this.parked.size > 0
  }
}

export class Places {
  readonly #limits: PlaceLimits
  readonly #holders = new Map<string, Holder>()
  readonly #ring = new Ring<Holder>()
  #held = 0
  #resuming = false

  constructor(limits: PlaceLimits) {
    this.#limits = limits
  }

  /** `held`: how many of those that the customer has its queue holds. */
  mayTake(customer: string, held = 0): boolean {
    const { atOnce, perCustomer } = this.#limits
    const share = Math.min(perCustomer, SHARE_PER_FREE * (atOnce - this.#held))
    return held < SHARE_PER_FREE * (share - (this.#holders.get(customer)?.held ?? 0))
  }

  /** After `mayTake`; ends with `leave`. */
  take(customer: string): void {
    this.#holder(customer).held++
    this.#held++
  }

  leave(customer: string): void {
    const holder = this.#holders.get(customer)
    if (!holder || holder.held === 0) throw new Error(`customer ${customer} holds no place`)
    holder.held--
    this.#held--
    this.#forgetIfUnused(holder)
    this.#resume()
  }

  park(customer: string, waiter: Waiter): void {
    const holder = this.#holder(customer)
    holder.parked.add(waiter)
    this.#ring.line(holder)
  }

  /** Nothing is left to resume. */
  unpark(customer: string, waiter: Waiter): void {
    const holder = this.#holders.get(customer)
    if (!holder) return
    holder.parked.delete(waiter)
    this.#forgetIfUnused(holder)
  }

  /** A loop, for what is resumed may end at once and come back here by `leave`. */
  #resume(): void {
    if (this.#resuming) return
    this.#resuming = true
    try {
      for (let next = this.#next(); next; next = this.#next()) next.resume()
    } finally {
      this.#resuming = false
    }
  }

  #next(): Waiter | undefined {
    if (this.#held >= this.#limits.atOnce) return undefined
    return this.#ring.next((holder) => this.#waiterOf(holder))
  }

  /** Those that are passed over, customers and queues, hold three places or more: they are not many. */
  #waiterOf(holder: Holder): Waiter | undefined {
    if (!this.mayTake(holder.name)) return undefined
    for (const waiter of holder.parked) {
      if (!this.mayTake(holder.name, waiter.running)) continue
      holder.parked.delete(waiter)
      this.#forgetIfUnused(holder)
      return waiter
    }
    return undefined
  }

  #holder(name: string): Holder {
    const known = this.#holders.get(name)
    if (known) return known
    const holder = new Holder(name)
    this.#holders.set(name, holder)
    return holder
  }

  #forgetIfUnused(holder: Holder): void {
    if (holder.held === 0 && holder.parked.size === 0) this.#holders.delete(holder.name)
  }
}
