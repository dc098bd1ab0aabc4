import type { IncomingMessage, ServerResponse } from 'node:http'
import { type BodyRoom, UNBOUNDED } from './body-shares.ts'

/** Request bodies as raw bytes. Invariant: no more than the limit of a body is ever held, and of all what the budget has. */

/** Why there are no bytes of a body. `busy`: the budget has no room. */
export type NoBody = 'too-large' | 'encoded' | 'busy' | 'aborted'

/** What became of a request body. */
export type ReadBody = Buffer | NoBody

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
 * length of the `room` (default: without end), and the caller gives that back.
 */
export function readBody(
  req: IncomingMessage,
  res: ServerResponse,
  limit: number,
  room: BodyRoom = UNBOUNDED,
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
    const announced = Number(req.headers['content-length'])
    const chunks: Buffer[] = []
    let size = 0
    // What is only announced takes no room: announcing a body and sending nothing costs next to nothing.
    const onData = (chunk: Buffer): void => {
      if (size + chunk.length > limit) finish('too-large')
      else if (!room.take(chunk.length)) finish('busy')
      else {
        size += chunk.length
        chunks.push(chunk)
        // A body that came in one piece, as most do, never makes room: it is not worth the bookkeeping.
        if (chunks.length === 1 && size !== announced) room.arrives(giveUp)
      }
    }
    // Most bodies arrive in one piece: those are not copied.
    const onEnd = (): void => finish(chunks.length > 1 ? Buffer.concat(chunks, size) : (chunks[0] ?? EMPTY))
    const onError = (): void => finish('aborted')
    const giveUp = (): void => finish('busy')
    const finish = (result: ReadBody): void => {
      room.arrived()
      if (typeof result === 'string') {
        // Nothing follows an end: there the listeners go with the request, which costs less.
        req.off('data', onData)
        req.off('end', onEnd)
        room.giveBack(size)
      }
      // `error` keeps its listener: an aborted request must not become an uncaught exception.
      size = 0
      resolve(result)
    }
    req.on('data', onData)
    req.on('end', onEnd)
    req.on('error', onError)
  })
}
