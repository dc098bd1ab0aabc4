import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../runtime/clock.ts'
import { closingHeaders } from './answer-headers.ts'
import { awaitsContinue } from './body.ts'
import { REQUEST_ID_HEADER } from './request-id.ts'

/**
 * Answers to requests whose body was not read.
 *
 * Invariant: a refused body never costs the client its answer: the answer is written first, what is still on its way is
 * read and thrown away up to a bound, and only then does the connection close (closing at once would reset it, and a reset
 * discards the answer).
 */

/** An answer as JSON text, whose line is ended where it is not; `retryAfter` in seconds. */
export interface EarlyAnswer {
  readonly status: number
  readonly body: string
  readonly retryAfter?: number | undefined
  /** The `X-Request-Id` header; absent where the request was refused before it had one. */
  readonly requestId?: string | undefined
}

/** How much of a refused body is read and thrown away, bytes, and for how long, ms. */
const DRAIN_BYTES = 16 * 1024 * 1024
const DRAIN_MS = 5_000
/** A refused body of up to so many bytes is awaited, so that its connection stays. */
export const SKIPPED_BYTES = 64 * 1024

/**
 * Answers a request that is refused whatever its body says, without keeping any of it. A short body is awaited, and `send`
 * answers; otherwise the answer comes at once, and the connection closes.
 */
export async function refuseUnread(
  clock: Clock,
  req: IncomingMessage,
  res: ServerResponse,
  answer: EarlyAnswer,
  send: () => void,
): Promise<void> {
  const skipped = await skip(req)
  if (skipped === 'ended') send()
  else if (skipped === 'long') answerEarly(clock, req, res, answer)
}

/** Reads up to `SKIPPED_BYTES` of a body and throws them away; nothing of one that is known to be longer. */
function skip(req: IncomingMessage): Promise<'ended' | 'long' | 'aborted'> {
  if (Number(req.headers['content-length']) > SKIPPED_BYTES || awaitsContinue(req))
    return Promise.resolve('long')
  if (req.destroyed && !req.complete) return Promise.resolve('aborted')
  return new Promise((resolve) => {
    let left = SKIPPED_BYTES
    const onData = (chunk: Buffer): void => {
      left -= chunk.length
      if (left < 0) finish('long')
    }
    const onEnd = (): void => finish('ended')
    const finish = (result: 'ended' | 'long' | 'aborted'): void => {
      req.off('data', onData)
      req.off('end', onEnd)
      resolve(result)
    }
    req.on('data', onData)
    req.on('end', onEnd)
    req.on('error', () => finish('aborted'))
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
  { status, body, retryAfter, requestId }: EarlyAnswer,
): void {
  const line = body.endsWith('\n') ? body : `${body}\n`
  const headers = closingHeaders(line)
  if (requestId !== undefined) headers.push(REQUEST_ID_HEADER, requestId)
  if (retryAfter !== undefined) headers.push('Retry-After', String(retryAfter))
  res.writeHead(status, headers)
  // Written, not ended: ending would close the connection under a client that is still sending.
  res.write(line)
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
