import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/**
 * The order of what a connection is answered (docs/architecture/protocol.md, "Connections"). Node hands over each request
 * as soon as its head is read, also while the one before it runs, and tells of bad bytes at once.
 *
 * Invariants: a request runs only when all before it on its connection are answered, and never behind an answer that
 * closes the connection. What is no request is refused only when all requests before it are answered.
 */

/** Answers a request, at once or later. */
export type Handler = (req: IncomingMessage, res: ServerResponse) => unknown

/** `_httpMessage`: the answer that the connection is giving (test/http/node-internals.test.ts). */
export type HttpSocket = Socket & { _httpMessage?: ServerResponse | null }

export class Turns {
  /** Of a connection: the last answer that waits for those before it. */
  readonly #last = new WeakMap<Socket, ServerResponse>()
  /** Connections that end with a refusal. */
  readonly #refused = new WeakSet<Socket>()
  /** Of a waiting answer whose request broke off: the refusal, as bytes of HTTP, that takes its place. */
  readonly #instead = new WeakMap<ServerResponse, string>()

  /** `handler`, once it is the request's turn. A request without others before it costs two comparisons. */
  inTurn(handler: Handler): Handler {
    return (req, res) => {
      // The connection is being closed: nobody could be told what became of this request.
      if (!req.socket.writable) return
      if (res.socket !== null) return handler(req, res)
      this.#wait(req, res, handler)
    }
  }

  /** Node gives an answer its socket once the one before it is sent, and never behind one that closes the connection. */
  #wait(req: IncomingMessage, res: ServerResponse, handler: Handler): void {
    const { socket } = req
    this.#last.set(socket, res)
    // So what waits is bounded by what one read of the socket brings. Not at once: the end of the request would resume it.
    process.nextTick(() => {
      if (res.socket === null) socket.pause()
    })
    res.once('socket', () => {
      socket.resume()
      if (this.#last.get(socket) === res) this.#last.delete(socket)
      // Not at once: Node is still giving the socket.
      process.nextTick(() => this.#run(req, res, handler))
    })
  }

  #run(req: IncomingMessage, res: ServerResponse, handler: Handler): void {
    const refusal = this.#instead.get(res)
    if (refusal === undefined) handler(req, res)
    else end(req.socket, refusal)
  }

  /** Answers bytes that are no request, or the half of one, with `refusal` in its turn, and closes the connection. */
  refuse(socket: HttpSocket, refusal: string): void {
    if (this.#refused.has(socket) || !socket.writable) return
    this.#refused.add(socket)
    const last = this.#last.get(socket) ?? socket._httpMessage
    if (!last) end(socket, refusal)
    else if (last.req.complete) last.once('finish', () => end(socket, refusal))
    else if (last.socket === null) this.#instead.set(last, refusal)
    // Half a request has at most one answer.
    else if (last.headersSent) last.once('finish', () => socket.destroySoon())
    else end(socket, refusal)
  }
}

/** Nothing is added once an answer has closed the connection. */
function end(socket: Socket, refusal: string): void {
  if (socket.writable) socket.end(refusal, () => socket.destroy())
}
