/**
 * A network between the service and its broker that reads the protocol of NATS. It swallows chosen messages, or strikes
 * at one: before the message reaches the broker, or after the broker acted on it and before the service hears so. The
 * strike is the caller's (it kills the service). Nothing passes afterwards on the connections of that moment.
 */
import { type Frame, FrameReader } from './nats-frames.ts'
import { type Filter, TcpProxy } from './tcp-proxy.ts'

export type Which = (frame: Frame) => boolean

/** What the service published, and the broker's answer to it when the strike came after. */
export interface Struck {
  readonly frame: Frame
  readonly answer: Frame | null
}

interface Snare {
  readonly when: 'before' | 'after'
  readonly which: Which
  readonly strike: () => void | Promise<void>
  readonly resolve: (struck: Struck) => void
  /** The message that went to the broker; its answer is the strike. */
  passed: Frame | null
}

interface Loss {
  readonly which: Which
  readonly resolve: () => void
  reply: string | null
}

interface Connection {
  /** Nothing passes any more. */
  struck: boolean
}

const none: Which = () => false

export class NatsProxy {
  #tcp!: TcpProxy
  readonly #connections = new Set<Connection>()
  #snare: Snare | null = null
  #loss: Loss | null = null
  #swallows = none
  #swallowed = 0

  private constructor() {}

  /** Listens on a free port of 127.0.0.1; leads to `port` of it. */
  static async to(port: number): Promise<NatsProxy> {
    const proxy = new NatsProxy()
    proxy.#tcp = await TcpProxy.to(port, () => proxy.#filters())
    return proxy
  }

  /** The same URL through this proxy. */
  through(url: string): string {
    return this.#tcp.through(url)
  }

  /**
   * Strikes once, at the next message of the service that `which` picks, which is swallowed (`after`: its answer is).
   * While `strike` takes its time all else still passes. Replaces a snare that did not close.
   */
  strikeAt(when: Snare['when'], which: Which, strike: Snare['strike']): Promise<Struck> {
    return new Promise((resolve) => {
      this.#snare = { when, which, strike, resolve, passed: null }
    })
  }

  /** Swallows the answer to the next message of the service that `which` picks; resolves when it is swallowed. */
  loseAnswerTo(which: Which): Promise<void> {
    return new Promise((resolve) => {
      this.#loss = { which, resolve, reply: null }
    })
  }

  /** From now on, swallows the messages of the broker that `which` picks. Replaces what was picked before. */
  swallow(which: Which): void {
    this.#swallows = which
  }

  /** Messages that `swallow` has taken. */
  get swallowed(): number {
    return this.#swallowed
  }

  /** Nothing strikes any more, and nothing is swallowed. */
  disarm(): void {
    this.#snare = null
    this.#loss = null
    this.#swallows = none
  }

  /** Cuts every connection; new ones are let through. */
  reset(): void {
    this.#tcp.reset()
  }

  close(): Promise<void> {
    return this.#tcp.close()
  }

  #filters(): { up: Filter; down: Filter } {
    const connection: Connection = { struck: false }
    this.#connections.add(connection)
    return {
      up: filter(connection, (frame) => this.#mayGoUp(frame)),
      down: filter(connection, (frame) => this.#mayGoDown(frame)),
    }
  }

  #mayGoUp(frame: Frame): boolean {
    if (frame.verb !== 'PUB' && frame.verb !== 'HPUB') return true
    const loss = this.#loss
    if (loss?.reply === null && loss.which(frame)) loss.reply = frame.reply
    const snare = this.#snare
    if (!snare || snare.passed || !snare.which(frame)) return true
    if (snare.when === 'before') {
      this.#strike(snare, frame, null)
      return false
    }
    snare.passed = frame
    return true
  }

  #mayGoDown(frame: Frame): boolean {
    if (frame.verb !== 'MSG' && frame.verb !== 'HMSG') return true
    if (this.#swallows(frame)) {
      this.#swallowed += 1
      return false
    }
    const loss = this.#loss
    if (loss?.reply && frame.subject === loss.reply) {
      this.#loss = null
      loss.resolve()
      return false
    }
    const snare = this.#snare
    if (!snare?.passed || frame.subject !== snare.passed.reply) return true
    this.#strike(snare, snare.passed, frame)
    return false
  }

  /** Then nothing passes any more but what came before. */
  #strike(snare: Snare, frame: Frame, answer: Frame | null): void {
    this.#snare = null
    const copy = (from: Frame) => ({ ...from, payload: Buffer.from(from.payload) })
    const struck = { frame: copy(frame), answer: answer && copy(answer) }
    const over = () => {
      for (const connection of this.#connections) connection.struck = true
      // What stood before the message in the same bytes goes first.
      queueMicrotask(() => this.#tcp.hangUp())
      snare.resolve(struck)
    }
    const striking = snare.strike()
    if (striking) void striking.finally(over)
    else over()
  }
}

/** The bytes of the whole frames that may pass, until the connection is struck. */
function filter(connection: Connection, mayPass: Which): Filter {
  const frames = new FrameReader()
  return (chunk) => {
    const passing: Buffer[] = []
    for (const frame of frames.push(chunk)) {
      if (!connection.struck && mayPass(frame)) passing.push(frame.raw)
    }
    return Buffer.concat(passing)
  }
}
