/**
 * Who may have one of a few places, and when: a connection to an origin, or a lookup of a name. Pure: it counts, and
 * calls `start`.
 *
 * Two rules keep what hangs from holding up others. Each origin has a queue of its own, so nobody waits for another
 * origin. Within one queue, flows (the buffers of an origin, the customers with lookups) take turns, and a flow may
 * hold at most three times as many places as are left free. Alone it gets three quarters of them; while a few flows
 * hang, others find some free; and where many do, what becomes free goes to those with little.
 */
import { Fifo } from '../runtime/fifo.ts'

/** How many places there are, and how much may wait for them. */
export interface QueueLimits {
  /** Places, at least 1. */
  atOnce: number
  /** Of them for one flow, at least 1. Default: its share alone bounds it. */
  perFlow?: number
  /** Turns. */
  waiting: number
  /** Sum of the bodies that wait; one alone may be larger. */
  waitingBytes: number
}

export interface Turn {
  readonly flow: string
  readonly bytes: number
  /** Called once, when the turn has come; ends with `leave`. */
  start(): void
  /** Called instead of `start` when the queue is emptied. */
  refuse(reason: string): void
}

interface Flow {
  readonly name: string
  readonly waiting: Fifo<Turn>
  running: number
  /** Whether it stands in the ring. */
  lined: boolean
}

const SHARE_PER_FREE = 3

export class TurnQueue {
  readonly #limits: QueueLimits
  readonly #flows = new Map<string, Flow>()
  /** Every flow with a waiting turn, once; the first is next, and goes to the end when it was served or passed over. */
  readonly #ring = new Fifo<Flow>()
  #running = 0
  #waiting = 0
  #waitingBytes = 0
  #advancing = false

  constructor(limits: QueueLimits) {
    this.#limits = limits
  }

  get running(): number {
    return this.#running
  }

  get waiting(): number {
    return this.#waiting
  }

  /** Starts `turn` now or later; false when too much waits already. */
  enter(turn: Turn): boolean {
    const flow = this.#flow(turn.flow)
    if (this.#full(turn) && !this.#mayStart(flow)) {
      this.#forgetIfUnused(flow)
      return false
    }
    flow.waiting.push(turn)
    this.#line(flow)
    this.#waiting++
    this.#waitingBytes += turn.bytes
    this.#advance()
    return true
  }

  /** Takes `turn` out again; false when it is not waiting (any more). */
  withdraw(turn: Turn): boolean {
    const flow = this.#flows.get(turn.flow)
    if (!flow?.waiting.remove(turn)) return false
    this.#uncount(turn)
    this.#forgetIfUnused(flow)
    return true
  }

  /** A started turn of `flow` is over. */
  leave(name: string): void {
    const flow = this.#flows.get(name)
    if (!flow || flow.running === 0) throw new Error(`no running turn of flow ${name}`)
    flow.running--
    this.#running--
    this.#forgetIfUnused(flow)
    this.#advance()
  }

  /** Refuses everything that waits. */
  empty(reason: string): void {
    for (const flow of [...this.#flows.values()]) {
      for (let turn = flow.waiting.shift(); turn; turn = flow.waiting.shift()) {
        this.#uncount(turn)
        turn.refuse(reason)
      }
      this.#forgetIfUnused(flow)
    }
  }

  #full(turn: Turn): boolean {
    const { waiting, waitingBytes } = this.#limits
    return this.#waiting >= waiting || (this.#waiting > 0 && this.#waitingBytes + turn.bytes > waitingBytes)
  }

  #mayStart(flow: Flow): boolean {
    const { atOnce, perFlow = atOnce } = this.#limits
    return flow.running < Math.min(perFlow, SHARE_PER_FREE * (atOnce - this.#running))
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

  /** Passes over flows at their share: each holds 3 places or more, or `perFlow`, so they are few. */
  #next(): Turn | undefined {
    for (let passed = this.#ring.size; passed > 0 && this.#running < this.#limits.atOnce; passed--) {
      const flow = this.#ring.shift()
      if (!flow) return undefined
      flow.lined = false
      const turn = this.#mayStart(flow) ? flow.waiting.shift() : undefined
      if (flow.waiting.size > 0) this.#line(flow)
      if (!turn) continue
      this.#uncount(turn)
      flow.running++
      this.#running++
      return turn
    }
    return undefined
  }

  #line(flow: Flow): void {
    if (flow.lined) return
    flow.lined = true
    this.#ring.push(flow)
  }

  #uncount(turn: Turn): void {
    this.#waiting--
    this.#waitingBytes -= turn.bytes
  }

  #flow(name: string): Flow {
    const known = this.#flows.get(name)
    if (known) return known
    const flow: Flow = { name, waiting: new Fifo(), running: 0, lined: false }
    this.#flows.set(name, flow)
    return flow
  }

  #forgetIfUnused(flow: Flow): void {
    if (flow.running === 0 && flow.waiting.size === 0) this.#flows.delete(flow.name)
  }
}
