import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../runtime/clock.ts'
import { closingHeaders } from './answer-headers.ts'

/**
 * Request bodies as raw bytes, bounded, and answers that reach a client which is still sending.
 *
 * Invariant: no more than the limit of a body is ever held, and a refused body never costs the client its
 * answer: the answer is written first, what is still on its way is read and thrown away up to a bound, and
 * only then does the connection close (closing at once would reset it, and a reset discards the answer).
 */

/** What became of a request body: its bytes, or why there are none. */
export type ReadBody = Buffer | 'too-large' | 'encoded' | 'aborted'

const EMPTY = Buffer.alloc(0)

/** How much of a refused body is read and thrown away, bytes, and for how long, ms. */
const DRAIN_BYTES = 16 * 1024 * 1024
const DRAIN_MS = 5_000

/**
 * The whole body, at most `limit` bytes, judged by Content-Length first and by its chunks after that. Never
 * rejects: `aborted` when the connection was lost (or timed out) before its end.
 */
export function readBody(req: IncomingMessage, res: ServerResponse, limit: number): Promise<ReadBody> {
  const encoding = req.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') return Promise.resolve('encoded')
  if (Number(req.headers['content-length']) > limit) return Promise.resolve('too-large')
  if (req.destroyed && !req.complete) return Promise.resolve('aborted')
  // The listener leaves the interim answer to us, so that a refused body is never invited.
  if (req.headers.expect !== undefined && req.httpVersion === '1.1') res.writeContinue()
  return collect(req, limit)
}

function collect(req: IncomingMessage, limit: number): Promise<ReadBody> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    let size = 0
    const onData = (chunk: Buffer): void => {
      size += chunk.length
      if (size > limit) finish('too-large')
      else chunks.push(chunk)
    }
    // Most bodies arrive in one piece: those are not copied.
    const onEnd = (): void => finish(chunks.length > 1 ? Buffer.concat(chunks, size) : (chunks[0] ?? EMPTY))
    const onError = (): void => finish('aborted')
    const finish = (result: ReadBody): void => {
      req.off('data', onData)
      req.off('end', onEnd)
      // `error` keeps its listener: an aborted request must not become an uncaught exception.
      resolve(result)
    }
    req.on('data', onData)
    req.on('end', onEnd)
    req.on('error', onError)
  })
}

/**
 * Sends a complete answer although the request's body was not read, and closes the connection once the body
 * has ended or the bound of what is thrown away is reached.
 */
export function answerEarly(
  clock: Clock,
  req: IncomingMessage,
  res: ServerResponse,
  status: number,
  body: string,
): void {
  res.writeHead(status, closingHeaders(body))
  // Written, not ended: ending would close the connection under a client that is still sending.
  res.write(body)
  discardRest(clock, req, () => res.end())
}

function discardRest(clock: Clock, req: IncomingMessage, done: () => void): void {
  let left = DRAIN_BYTES
  const cancel = clock.after(DRAIN_MS, finish)
  function finish(): void {
    cancel()
    req.off('data', onData)
    req.off('end', finish)
    req.off('error', finish)
    req.on('error', ignore)
    done()
  }
  function onData(chunk: Buffer): void {
    left -= chunk.length
    if (left < 0) finish()
  }
  if (req.complete || req.destroyed) {
    finish()
    return
  }
  req.on('data', onData)
  req.on('end', finish)
  req.on('error', finish)
  req.resume()
}

function ignore(): void {}
