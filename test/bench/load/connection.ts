/** A bare keep-alive HTTP client, one request at a time: Node's own would cost more than what is measured. */
import { connect, type Socket } from 'node:net'

const HEAD_END = Buffer.from('\r\n\r\n')

export class HttpConnection {
  readonly #socket: Socket
  readonly #answered: (status: number) => void
  #pending: Buffer | null = null

  /** `answered`: the status of the request's answer; 0 when the connection broke. */
  constructor(url: URL, answered: (status: number) => void) {
    this.#answered = answered
    this.#socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true })
    this.#socket.on('data', (chunk: Buffer) => this.#received(chunk))
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => answered(0))
  }

  send(request: string): void {
    this.#socket.write(request, 'latin1')
  }

  close(): void {
    this.#socket.removeAllListeners('close')
    this.#socket.destroy()
  }

  #received(chunk: Buffer): void {
    const bytes = this.#pending === null ? chunk : Buffer.concat([this.#pending, chunk])
    this.#pending = bytes
    const headEnd = bytes.indexOf(HEAD_END)
    if (headEnd < 0) return
    const head = bytes.toString('latin1', 0, headEnd)
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
    if (bytes.length < headEnd + 4 + length) return
    this.#pending = null
    this.#answered(Number(head.slice(9, 12)))
  }
}
