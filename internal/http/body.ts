import type { IncomingMessage, ServerResponse } from 'node:http'

/** Request bodies as raw bytes. Invariant: no more than the limit of a body is ever held, and of all what the budget has. */

/** Why there are no bytes of a body. `busy`: the budget has no room. */
export type NoBody = 'too-large' | 'encoded' | 'busy' | 'aborted'

/** What became of a request body. */
export type ReadBody = Buffer | NoBody

/** Where the bytes of a body are counted while they are held. */
export interface BodyRoom {
  /** Whether so many bytes could be taken now. */
  has(bytes: number): boolean
  /** false: there is no room, and nothing is taken. */
  take(bytes: number): boolean
  giveBack(bytes: number): void
}

/** Bytes that bodies share. */
export class BodyBudget implements BodyRoom {
  readonly #limit: number
  #taken = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get free(): number {
    return this.#limit - this.#taken
  }

  has(bytes: number): boolean {
    return bytes <= this.free
  }

  take(bytes: number): boolean {
    if (!this.has(bytes)) return false
    this.#taken += bytes
    return true
  }

  giveBack(bytes: number): void {
    this.#taken -= bytes
  }
}

/**
 * The budget of a process, in shares (docs/architecture/protocol.md, "Connections"). A holder may hold as much as it leaves
 * free, so that bodies which stand still leave room for others: a holder alone has half, two have a third each. One
 * body at a time needs nothing but room.
 */
export class BodyShares {
  readonly #budget: BodyBudget
  readonly #held = new Map<string, number>()

  /** Bytes of all holders. */
  constructor(limit: number) {
    this.#budget = new BodyBudget(limit)
  }

  /** Room for one body of a holder, such as a customer. */
  of(holder: string): BodyRoom {
    let own = 0
    const has = (bytes: number) => this.#has(holder, bytes, own)
    return {
      has,
      take: (bytes) => {
        if (!has(bytes)) return false
        own += bytes
        this.#take(holder, bytes)
        return true
      },
      giveBack: (bytes) => {
        own -= bytes
        this.#take(holder, -bytes)
      },
    }
  }

  /** `own`: bytes that the same body holds. */
  #has(holder: string, bytes: number, own: number): boolean {
    const held = this.#held.get(holder) ?? 0
    return this.#budget.has(held > own ? held + 2 * bytes : bytes)
  }

  /** Negative: given back. */
  #take(holder: string, bytes: number): void {
    this.#budget.giveBack(-bytes)
    const held = (this.#held.get(holder) ?? 0) + bytes
    if (held > 0) this.#held.set(holder, held)
    else this.#held.delete(holder)
  }
}

const EMPTY = Buffer.alloc(0)
const UNBOUNDED: BodyRoom = { has: () => true, take: () => true, giveBack: () => {} }

/** What the head of a request alone refuses; null: nothing. */
export function judgeHead(req: IncomingMessage, limit: number): 'encoded' | 'too-large' | null {
  const encoding = req.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') return 'encoded'
  return Number(req.headers['content-length']) > limit ? 'too-large' : null
}

/**
 * The whole body, at most `limit` bytes, judged by Content-Length first and by its chunks after that. Never
 * rejects: `aborted` when the connection was lost (or timed out) before its end. A body that is returned has taken its
 * length of the `room` (default: without end), and the caller gives that back.
 */
export function readBody(
  req: IncomingMessage,
  res: ServerResponse,
  limit: number,
  room = UNBOUNDED,
): Promise<ReadBody> {
  const refused = judgeHead(req, limit)
  return refused === null ? readJudgedBody(req, res, limit, room) : Promise.resolve(refused)
}

/** As `readBody`, where `judgeHead` has refused nothing. */
export function readJudgedBody(
  req: IncomingMessage,
  res: ServerResponse,
  limit: number,
  room: BodyRoom,
): Promise<ReadBody> {
  if (req.destroyed && !req.complete) return Promise.resolve('aborted')
  if (!room.has(Number(req.headers['content-length'] ?? 0))) return Promise.resolve('busy')
  // The listener leaves the interim answer to us, so that a refused body is never invited.
  if (awaitsContinue(req)) res.writeContinue()
  return collect(req, limit, room)
}

/** Whether the client waits for `100 Continue` before it sends the body. */
export function awaitsContinue(req: IncomingMessage): boolean {
  return req.headers.expect !== undefined && req.httpVersion === '1.1'
}

function collect(req: IncomingMessage, limit: number, room: BodyRoom): Promise<ReadBody> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    // What is only announced takes no room: announcing a body and sending nothing costs next to nothing.
    const onData = (chunk: Buffer): void => {
      if (size + chunk.length > limit) finish('too-large')
      else if (!room.take(chunk.length)) finish('busy')
      else {
        size += chunk.length
        chunks.push(chunk)
      }
    }
    // Most bodies arrive in one piece: those are not copied.
    const onEnd = (): void => finish(chunks.length > 1 ? Buffer.concat(chunks, size) : (chunks[0] ?? EMPTY))
    const onError = (): void => finish('aborted')
    const finish = (result: ReadBody): void => {
      req.off('data', onData)
      req.off('end', onEnd)
      // `error` keeps its listener: an aborted request must not become an uncaught exception.
      if (typeof result === 'string') room.giveBack(size)
      size = 0
      resolve(result)
    }
    req.on('data', onData)
    req.on('end', onEnd)
    req.on('error', onError)
  })
}
