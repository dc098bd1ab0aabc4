/**
 * Who may have one of a few places, and when: a connection to an origin, or a lookup of a name. Pure: it counts, and
 * calls `start`.
 *
 * These rules keep what hangs, and what comes in masses, from holding up others. Each origin has a queue of its own, so
 * nobody waits for another origin. Within one queue customers take turns, and the flows (buffers) of a customer among
 * themselves. Each may hold at most three times as many places as are left free. So a flow alone gets three quarters of
 * them; while a few hang, others find some free; and where many do, what becomes free goes to those with little. A
 * customer who has never met another one in this queue may hold all places: nobody would gain by what is left free.
 *
 * What waits is shared out in the same way: a customer may hold three times the room that is left, and one of its flows
 * as much as the customer may add. A customer of whom nothing waits always finds room. So does such a flow, as long as
 * the bodies of its customer leave some.
 */
import { Fifo } from '../runtime/fifo.ts'
import { SHARE_PER_FREE, type Taker } from '../runtime/shared-budget.ts'
import type { Places, Waiter } from './places.ts'
import { Ring } from './ring.ts'

/** How many places there are, and how much may wait for them. */
export interface QueueLimits {
  /** Places, at least 1. */
  atOnce: number
  /** Of them for one customer, at least 1. Default: its share alone bounds it. */
  perCustomer?: number
  /** Turns. */
  waiting: number
  /** Sum of the bodies that wait; one alone may be larger. */
  waitingBytes: number
}

export interface Turn extends Taker {
  readonly bytes: number
  /** Called once, when the turn has come; ends with `leave`. */
  start(): void
  /** Called instead of `start` when the queue is emptied. */
  refuse(reason: string): void
}

class Flow {
  readonly name: string
  readonly turns = new Fifo<Turn>()
  waitingBytes = 0
  running = 0
  lined = false

  constructor(name: string) {
    this.name = name
  }

  get waits(): boolean {
    return this.turns.size > 0
  }
}

class Customer implements Waiter {
  readonly id: string
  readonly flows = new Map<string, Flow>()
  /** Flows with a waiting turn. */
  readonly ring = new Ring<Flow>()
  readonly #onResume: (customer: Customer) => void
  /** No place of the process is left for it: it stands in no ring until one is. */
  parked = false
  waiting = 0
  waitingBytes = 0
  running = 0
  lined = false

  constructor(id: string, onResume: (customer: Customer) => void) {
    this.id = id
    this.#onResume = onResume
  }

  resume(): void {
    this.#onResume(this)
  }

  get waits(): boolean {
    return this.waiting > 0 && !this.parked
  }
}

export class TurnQueue {
  readonly #limits: QueueLimits
  readonly #places: Places | undefined
  readonly #customers = new Map<string, Customer>()
  readonly #ring = new Ring<Customer>()
  /** Whether two customers have been here at once. */
  #shared = false
  #running = 0
  #waiting = 0
  #waitingBytes = 0
  #advancing = false

  /** `places`: each turn takes one of them as well, for as long as it runs. */
  constructor(limits: QueueLimits, places?: Places) {
    this.#limits = limits
    this.#places = places
  }

  get running(): number {
    return this.#running
  }

  get waiting(): number {
    return this.#waiting
  }

  /** Whether such a turn may enter now: false when too much of its customer, or of its flow, waits already. */
  hasRoom(turn: Omit<Turn, 'start' | 'refuse'>): boolean {
    const customer = this.#customers.get(turn.customerId)
    if (!customer || customer.waiting === 0) return true
    const flow = customer.flows.get(turn.flow)
    return this.#mayWait(turn.bytes, customer, flow) || this.#mayStart(customer, flow)
  }

  /** Starts `turn` now or later; false when there is no room for it. */
  enter(turn: Turn): boolean {
    if (!this.hasRoom(turn)) return false
    const customer = this.#customer(turn.customerId)
    const flow = flowOf(customer, turn.flow)
    flow.turns.push(turn)
    this.#count(turn, customer, flow, 1)
    customer.ring.line(flow)
    this.#ring.line(customer)
    this.#advance()
    return true
  }

  /** Takes `turn` out again; false when it is not waiting (any more). */
  withdraw(turn: Turn): boolean {
    const customer = this.#customers.get(turn.customerId)
    const flow = customer?.flows.get(turn.flow)
    if (!customer || !flow?.turns.remove(turn)) return false
    this.#count(turn, customer, flow, -1)
    this.#forgetIfUnused(customer, flow)
    return true
  }

  /** A started turn is over. */
  leave({ customerId, flow: name }: Taker): void {
    const customer = this.#customers.get(customerId)
    const flow = customer?.flows.get(name)
    if (!customer || !flow || flow.running === 0) throw new Error(`no running turn of flow ${name}`)
    flow.running--
    customer.running--
    this.#running--
    this.#forgetIfUnused(customer, flow)
    this.#places?.leave(customerId)
    this.#advance()
  }

  /** Refuses everything that waits. */
  empty(reason: string): void {
    for (const customer of [...this.#customers.values()]) {
      for (const flow of [...customer.flows.values()]) {
        for (let turn = flow.turns.shift(); turn; turn = flow.turns.shift()) {
          this.#count(turn, customer, flow, -1)
          turn.refuse(reason)
        }
        this.#forgetIfUnused(customer, flow)
      }
    }
  }

  #mayWait(bytes: number, customer: Customer, flow: Flow | undefined): boolean {
    const { waiting, waitingBytes } = this.#limits
    const turns = SHARE_PER_FREE * (waiting - this.#waiting) - customer.waiting
    const room = SHARE_PER_FREE * (waitingBytes - this.#waitingBytes - bytes) - customer.waitingBytes
    return (!flow?.waits || flow.turns.size < turns) && (flow?.waitingBytes ?? 0) < room
  }

  #mayStart(customer: Customer, flow: Flow | undefined): boolean {
    return (
      this.#mayRun(customer) &&
      (flow?.running ?? 0) < SHARE_PER_FREE * this.#free &&
      (this.#places?.mayTake(customer.id, customer.running) ?? true)
    )
  }

  #mayRun(customer: Customer): boolean {
    const { atOnce, perCustomer = atOnce } = this.#limits
    const share = this.#shared ? SHARE_PER_FREE * this.#free : atOnce
    return customer.running < Math.min(perCustomer, share)
  }

  get #free(): number {
    return this.#limits.atOnce - this.#running
  }

  /** A loop, for `start` may end at once and come back here by `leave`. */
  #advance(): void {
    if (this.#advancing) return
    this.#advancing = true
    try {
      for (let turn = this.#next(); turn; turn = this.#next()) turn.start()
    } finally {
      this.#advancing = false
    }
  }

  /** Passes over those at their share: each holds 3 places or more, or `perCustomer`, so they are few. */
  #next(): Turn | undefined {
    if (this.#free <= 0) return undefined
    return this.#ring.next((customer) => {
      if (customer.waiting === 0 || !this.#mayRun(customer)) return undefined
      if (this.#places?.mayTake(customer.id, customer.running) === false) return this.#park(customer)
      return customer.ring.next((flow) => this.#begin(customer, flow))
    })
  }

  #begin(customer: Customer, flow: Flow): Turn | undefined {
    if (flow.running >= SHARE_PER_FREE * this.#free) return undefined
    const turn = flow.turns.shift()
    if (!turn) return undefined
    this.#count(turn, customer, flow, -1)
    flow.running++
    customer.running++
    this.#running++
    this.#places?.take(customer.id)
    return turn
  }

  #park(customer: Customer): undefined {
    customer.parked = true
    this.#places?.park(customer.id, customer)
  }

  /** `sign`: 1 for a turn that waits, -1 for one that does not any more. */
  #count({ bytes }: Turn, customer: Customer, flow: Flow, sign: 1 | -1): void {
    flow.waitingBytes += sign * bytes
    customer.waiting += sign
    customer.waitingBytes += sign * bytes
    this.#waiting += sign
    this.#waitingBytes += sign * bytes
  }

  #customer(id: string): Customer {
    const known = this.#customers.get(id)
    if (known) return known
    const customer = new Customer(id, (each) => this.#resume(each))
    this.#customers.set(id, customer)
    this.#shared ||= this.#customers.size > 1
    return customer
  }

  #resume(customer: Customer): void {
    customer.parked = false
    this.#ring.line(customer)
    this.#advance()
  }

  #forgetIfUnused(customer: Customer, flow: Flow): void {
    if (flow.running === 0 && !flow.waits) customer.flows.delete(flow.name)
    if (customer.waiting === 0 && customer.parked) {
      customer.parked = false
      this.#places?.unpark(customer.id, customer)
    }
    if (customer.flows.size === 0) this.#customers.delete(customer.id)
  }
}

function flowOf(customer: Customer, name: string): Flow {
  const known = customer.flows.get(name)
  if (known) return known
  const flow = new Flow(name)
  customer.flows.set(name, flow)
  return flow
}
