/** The bytes of a request, read before anything parses them, and no more of them than a limit. */
import type { IncomingMessage } from 'node:http'

/** The body is larger than the limit. */
export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError'
}

/** The sender went away in the middle of the body. */
export class BodyBrokenError extends Error {
  override readonly name = 'BodyBrokenError'
}

/** Something else read the body before: a parser stands in front of the handler. */
export class BodyReadError extends Error {
  override readonly name = 'BodyReadError'
}

/** `maxBytes`: at most so many are held. Rejects with a BodyTooLargeError, a BodyReadError or a BodyBrokenError. */
export async function readRawBody(request: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  const { body } = request as { body?: unknown }
  // What `express.raw()` left.
  if (body instanceof Uint8Array) return bounded(body, maxBytes)
  if (request.readableDidRead) throw new BodyReadError(ALREADY_READ)
  requireLength(request.headers['content-length'], maxBytes)
  return joined(request, maxBytes)
}

/** The same of a request of `fetch`. */
export async function readRequestBody(request: Request, maxBytes: number): Promise<Uint8Array> {
  if (request.bodyUsed) throw new BodyReadError(ALREADY_READ)
  requireLength(request.headers.get('content-length'), maxBytes)
  return joined((request.body ?? []) as AsyncIterable<Uint8Array>, maxBytes)
}

const ALREADY_READ = 'the body was read before the handler: mount the handler before parsers of bodies'

function requireLength(length: string | null | undefined, maxBytes: number): void {
  if (Number(length ?? 0) > maxBytes) throw tooLarge(maxBytes)
}

/** Node and `fetch` both give bytes, in pieces. */
async function joined(pieces: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  try {
    for await (const chunk of pieces) {
      bytes += chunk.byteLength
      if (bytes > maxBytes) throw tooLarge(maxBytes)
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof BodyTooLargeError) throw error
    throw new BodyBrokenError('the sender went away in the middle of the body', { cause: error })
  }
  return Buffer.concat(chunks)
}

function bounded(body: Uint8Array, maxBytes: number): Uint8Array {
  if (body.byteLength > maxBytes) throw tooLarge(maxBytes)
  return body
}

function tooLarge(maxBytes: number): BodyTooLargeError {
  return new BodyTooLargeError(`the body is larger than ${maxBytes} bytes`)
}
