import { SHARE_PER_FREE } from './places.ts'
import type { Taker } from './queue.ts'

interface Customer {
  bytes: number
  readonly flows: Map<string, number>
}

/**
 * Bytes of all bodies that run or wait, over all origins. Pure. They are shared out as what waits for one origin is
 * (`queue.ts`): a customer may hold three times what is left free, and a flow as much as its customer may still add. So
 * one buffer whose large batches hang leaves room to the others of its customer.
 */
export class Bodies {
  readonly #limit: number
  readonly #customers = new Map<string, Customer>()
  #bytes = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** A customer who holds nothing always finds room. The last body may be larger than what is left. */
  hasRoom({ customerId, flow }: Taker): boolean {
    const customer = this.#customers.get(customerId)
    if (!customer) return true
    const spare = SHARE_PER_FREE * (this.#limit - this.#bytes) - customer.bytes
    return (customer.flows.get(flow) ?? 0) < spare
  }

  /** Ends with `leave` of the same bytes. */
  take(taker: Taker, bytes: number): void {
    this.#add(taker, bytes)
  }

  leave(taker: Taker, bytes: number): void {
    const held = this.#customers.get(taker.customerId)?.flows.get(taker.flow) ?? 0
    if (held < bytes) throw new Error(`flow ${taker.flow} does not hold ${bytes} bytes`)
    this.#add(taker, -bytes)
  }

  #add({ customerId, flow }: Taker, bytes: number): void {
    const customer = this.#customers.get(customerId) ?? { bytes: 0, flows: new Map() }
    const ofFlow = (customer.flows.get(flow) ?? 0) + bytes
    customer.bytes += bytes
    this.#bytes += bytes
    this.#customers.set(customerId, customer)
    customer.flows.set(flow, ofFlow)
    if (ofFlow === 0) customer.flows.delete(flow)
    if (customer.bytes === 0) this.#customers.delete(customerId)
  }
}
