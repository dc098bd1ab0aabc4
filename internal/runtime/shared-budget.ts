/** What one may hold for each unit that is free: alone three quarters of all, two of them three sevenths each. */
export const SHARE_PER_FREE = 3

/** Who takes. Flows of two customers are two, whatever their names. */
export interface Taker {
  readonly customerId: string
  readonly flow: string
}

interface Customer {
  held: number
  readonly flows: Map<string, number>
}

/**
 * A budget that customers share, such as bytes of bodies. Pure. A customer may hold three times what is left free, and
 * one of its flows (buffers) as much as the customer may still add. So a flow that takes all it can leaves room to the
 * others of its customer, and a customer leaves room to other customers.
 */
export class SharedBudget {
  readonly #limit: number
  readonly #customers = new Map<string, Customer>()
  #held = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** A customer who holds nothing always finds room. What was taken last may be larger than what is left. */
  hasRoom({ customerId, flow }: Taker): boolean {
    const customer = this.#customers.get(customerId)
    if (!customer) return true
    const spare = SHARE_PER_FREE * (this.#limit - this.#held) - customer.held
    return (customer.flows.get(flow) ?? 0) < spare
  }

  /** Ends with `leave` of the same amount. */
  take(taker: Taker, amount: number): void {
    this.#add(taker, amount)
  }

  leave(taker: Taker, amount: number): void {
    const held = this.#customers.get(taker.customerId)?.flows.get(taker.flow) ?? 0
    if (held < amount) throw new Error(`flow ${taker.flow} does not hold ${amount}`)
    this.#add(taker, -amount)
  }

  #add({ customerId, flow }: Taker, amount: number): void {
    const customer = this.#customers.get(customerId) ?? { held: 0, flows: new Map() }
    const ofFlow = (customer.flows.get(flow) ?? 0) + amount
    customer.held += amount
    this.#held += amount
    this.#customers.set(customerId, customer)
    customer.flows.set(flow, ofFlow)
    if (ofFlow === 0) customer.flows.delete(flow)
    if (customer.held === 0) this.#customers.delete(customerId)
  }
}
