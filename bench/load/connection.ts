/** A bare keep-alive HTTP client, one request at a time: Node's own would cost more than what is measured. */
import { connect, type Socket } from 'node:net'

const HEAD_END = Buffer.from('\r\n\r\n')
const NOTHING = Buffer.alloc(0)

/** Status and body of an answer; 0 when the connection broke. */
export type Answered = (status: number, body: Buffer) => void

export class HttpConnection {
  readonly #socket: Socket
  readonly #answered: Answered
  #chunks: Buffer[] = []
  #bytes = 0
  /** Bytes of the whole answer; undefined until its head is here. */
  #length: number | undefined
  #headLength = 0

  constructor(url: URL, answered: Answered) {
    this.#answered = answered
    this.#socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true })
    this.#socket.on('data', (chunk: Buffer) => this.#received(chunk))
    this.#socket.on('error', () => {})
    this.#socket.on('close', () => answered(0, NOTHING))
  }

  send(request: string): void {
    this.#socket.write(request, 'latin1')
  }

  close(): void {
    this.#socket.removeAllListeners('close')
    this.#socket.destroy()
  }

  #received(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    if (this.#length === undefined) this.#readHead()
    if (this.#length === undefined || this.#bytes < this.#length) return
    const answer = this.#joined()
    const headLength = this.#headLength
    this.#chunks = []
    this.#bytes = 0
    this.#length = undefined
    this.#answered(Number(answer.toString('latin1', 9, 12)), answer.subarray(headLength))
  }

  #readHead(): void {
    const bytes = this.#joined()
    const headEnd = bytes.indexOf(HEAD_END)
    this.#chunks = [bytes]
    if (headEnd < 0) return
    const head = bytes.toString('latin1', 0, headEnd)
    this.#headLength = headEnd + HEAD_END.length
    this.#length = this.#headLength + Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  }

  #joined(): Buffer {
    return this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)
  }
}
