/**
 * Stands between the service and its broker, reads the protocol, and strikes at a chosen message: before it
 * reaches the broker, or after the broker acted on it but before the service hears so. What strikes is the
 * caller's (it kills the service); afterwards nothing passes on the connections of that moment.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'

import { type Frame, FrameReader } from './nats-frames.ts'

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

export class NatsProxy {
  readonly #server: Server
  readonly #lines = new Set<Line>()
  #snare: Snare | null = null
  #loss: Loss | null = null

  private constructor(server: Server) {
    this.#server = server
  }

  /** Listens on a free port of 127.0.0.1; leads to `port` of it. */
  static async to(port: number): Promise<NatsProxy> {
    const server = createServer()
    const proxy = new NatsProxy(server)
    server.on('connection', (near) => proxy.#join(near, connect(port, '127.0.0.1')))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return proxy
  }

  /** The same URL through this proxy. */
  through(url: string): string {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the proxy is closed')
    const through = new URL(url)
    through.port = String(address.port)
    return through.href
  }

  /**
   * Strikes once, at the next message that `which` picks, which is swallowed (`after`: its answer is). While
   * `strike` takes its time all else still passes. Replaces a snare that did not close.
   */
  strikeAt(when: Snare['when'], which: Which, strike: Snare['strike']): Promise<Struck> {
    return new Promise((resolve) => {
      this.#snare = { when, which, strike, resolve, passed: null }
    })
  }

  /** Swallows the answer to the next message that `which` picks; resolves when it is swallowed. */
  loseAnswerTo(which: Which): Promise<void> {
    return new Promise((resolve) => {
      this.#loss = { which, resolve, reply: null }
    })
  }

  /** Nothing strikes any more. */
  disarm(): void {
    this.#snare = null
    this.#loss = null
  }

  async close(): Promise<void> {
    this.#cut()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #join(near: Socket, far: Socket): void {
    const line: Line = { near, far, cut: false }
    this.#lines.add(line)
    this.#carry(near, far, line, (frame) => this.#onPublished(frame))
    this.#carry(far, near, line, (frame) => this.#onDelivered(frame))
  }

  #carry(from: Socket, to: Socket, line: Line, mayPass: (frame: Frame) => boolean): void {
    const frames = new FrameReader()
    from.on('data', (chunk: Buffer) => {
      const passing: Buffer[] = []
      for (const frame of frames.push(chunk)) {
        if (!line.cut && mayPass(frame)) passing.push(frame.raw)
        if (line.cut) break
      }
      if (passing.length > 0 && !to.destroyed) to.write(Buffer.concat(passing))
      if (line.cut) end(line)
    })
    from.on('error', () => {})
    from.on('close', () => {
      this.#lines.delete(line)
      to.destroy()
    })
  }

  #onPublished(frame: Frame): boolean {
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

  #onDelivered(frame: Frame): boolean {
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
      for (const line of this.#lines) line.cut = true
      snare.resolve(struck)
    }
    const striking = snare.strike()
    if (striking) void striking.finally(over)
    else over()
  }

  #cut(): void {
    for (const line of this.#lines) {
      line.cut = true
      line.near.destroy()
      line.far.destroy()
    }
  }
}

interface Line {
  readonly near: Socket
  readonly far: Socket
  cut: boolean
}

/** The broker gets what passed, then the end. */
function end({ near, far }: Line): void {
  far.end()
  near.destroy()
}
