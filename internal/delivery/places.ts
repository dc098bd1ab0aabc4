/**
 * Places of a process that several queues share, such as the attempts at once of all origins. Pure: it counts, and calls
 * `resume`.
 *
 * A customer may hold at most three times as many as are left free, and never more than `perCustomer`. So while a few
 * hold all they may, others find some free, and where many do, what becomes free goes to those with little. Customers
 * whose queues are held up take turns for it, and so do the queues of one customer.
 */
import { Ring } from './ring.ts'

export interface PlaceLimits {
  /** At least 1. */
  atOnce: number
  /** At least 1. */
  perCustomer: number
}

/** What one may hold for each that is free: alone three quarters of all, two of them three sevenths each. */
export const SHARE_PER_FREE = 3

class Holder {
  readonly name: string
  readonly parked = new Set<() => void>()
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

  mayTake(customer: string): boolean {
    const { atOnce, perCustomer } = this.#limits
    const held = this.#holders.get(customer)?.held ?? 0
    return held < Math.min(perCustomer, SHARE_PER_FREE * (atOnce - this.#held))
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

  /** `resume` is called once, as soon as the customer may take a place and its turn has come. */
  park(customer: string, resume: () => void): void {
    const holder = this.#holder(customer)
    holder.parked.add(resume)
    this.#ring.line(holder)
  }

  /** Nothing is left to resume. */
  unpark(customer: string, resume: () => void): void {
    const holder = this.#holders.get(customer)
    if (!holder) return
    holder.parked.delete(resume)
    this.#forgetIfUnused(holder)
  }

  /** A loop, for what is resumed may end at once and come back here by `leave`. */
  #resume(): void {
    if (this.#resuming) return
    this.#resuming = true
    try {
      for (let next = this.#next(); next; next = this.#next()) next()
    } finally {
      this.#resuming = false
    }
  }

  /** Those that are passed over hold three places or more, so they are not many. */
  #next(): (() => void) | undefined {
    if (this.#held >= this.#limits.atOnce) return undefined
    return this.#ring.next((holder) => {
      const [resume] = holder.parked
      if (!resume || !this.mayTake(holder.name)) return undefined
      holder.parked.delete(resume)
      this.#forgetIfUnused(holder)
      return resume
    })
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
