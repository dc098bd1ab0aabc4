import type { IncomingMessage, ServerResponse } from 'node:http'

/** Request bodies as raw bytes. Invariant: no more than the limit of a body is ever held, and of all what the budget has. */

/** Why there are no bytes of a body. `busy`: the budget has no room. */
export type NoBody = 'too-large' | 'encoded' | 'busy' | 'aborted'

/** What became of a request body. */
export type ReadBody = Buffer | NoBody

/** Bytes that the bodies of a process share (docs/architecture/protocol.md, "Connections"). */
export class BodyBudget {
  readonly #limit: number
  #taken = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  /** false: there is no room, and nothing is taken. */
  take(bytes: number): boolean {
    if (this.#taken + bytes > this.#limit) return false
    this.#taken += bytes
    return true
  }

  giveBack(bytes: number): void {
    this.#taken -= bytes
  }
}

const EMPTY = Buffer.alloc(0)

/** What the head of a request alone refuses; null: nothing. */
export function judgeHead(req: IncomingMessage, limit: number): 'encoded' | 'too-large' | null {
  const encoding = req.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') return 'encoded'
  return Number(req.headers['content-length']) > limit ? 'too-large' : null
}

/**
 * The whole body, at most `limit` bytes, judged by Content-Length first and by its chunks after that. Never
 * rejects: `aborted` when the connection was lost (or timed out) before its end. A body that is returned has taken its
 * length of the `budget` (default: none), and the caller gives that back.
 */
export function readBody(
  req: IncomingMessage,
  res: ServerResponse,
  limit: number,
  budget = new BodyBudget(Number.POSITIVE_INFINITY),
): Promise<ReadBody> {
  const refused = judgeHead(req, limit)
  return refused === null ? readJudgedBody(req, res, limit, budget) : Promise.resolve(refused)
}

/** As `readBody`, where `judgeHead` has refused nothing. */
export function readJudgedBody(
  req: IncomingMessage,
  res: ServerResponse,
  limit: number,
  budget: BodyBudget,
): Promise<ReadBody> {
  if (req.destroyed && !req.complete) return Promise.resolve('aborted')
  const announced = Number(req.headers['content-length'] ?? 0)
  if (!budget.take(announced)) return Promise.resolve('busy')
  // The listener leaves the interim answer to us, so that a refused body is never invited.
  if (awaitsContinue(req)) res.writeContinue()
  return collect(req, limit, budget, announced)
}

/** Whether the client waits for `100 Continue` before it sends the body. */
export function awaitsContinue(req: IncomingMessage): boolean {
  return req.headers.expect !== undefined && req.httpVersion === '1.1'
}

function collect(
  req: IncomingMessage,
  limit: number,
  budget: BodyBudget,
  announced: number,
): Promise<ReadBody> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    let taken = announced
    const onData = (chunk: Buffer): void => {
      size += chunk.length
      if (size > limit) finish('too-large')
      else if (size > taken && !budget.take(size - taken)) finish('busy')
      else {
        taken = Math.max(taken, size)
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
      if (typeof result === 'string') budget.giveBack(taken)
      taken = 0
      resolve(result)
    }
    req.on('data', onData)
    req.on('end', onEnd)
    req.on('error', onError)
  })
}
