import { connect, type Socket } from 'node:net'
import { takeDown } from '../support/answers.ts'

/** One answer as it came over the wire. */
export interface RawAnswer {
  status: number
  headers: Map<string, string>
  body: string
}

/**
 * HTTP/1.1 over a bare socket: what a well-behaved client library would never send. Answers are awaited one
 * by one; `ended` tells whether the server closed the connection.
 */
export class RawClient {
  readonly socket: Socket
  ended = false
  /** How many interim answers (100 Continue) came. */
  interim = 0
  #received: Buffer = Buffer.alloc(0)
  /** Requests that were sent whole lines of and not answered yet. */
  readonly #asked: { method: string; url: string }[] = []
  #wake = (): void => {}

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk])
      this.#wake()
    })
    socket.on('error', () => this.#end())
    socket.on('close', () => this.#end())
    socket.on('end', () => this.#end())
  }

  static async open(port: number): Promise<RawClient> {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true })
    const client = new RawClient(socket)
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
    return client
  }

  send(bytes: string | Uint8Array): void {
    if (typeof bytes === 'string') this.#asked.push(...requestLines(bytes))
    this.socket.write(bytes)
  }

  /** The next final answer (interim ones are passed over); rejects when the connection ends before it. */
  async answer(options: { head?: boolean } = {}): Promise<RawAnswer> {
    for (;;) {
      const parsed = this.#parse(options.head ?? false)
      if (parsed && parsed.status >= 200) return this.#checked(parsed)
      if (parsed) {
        this.interim++
        continue
      }
      if (this.ended) throw new Error(`connection ended after: ${this.#received.toString('latin1')}`)
      await this.#more()
    }
  }

  /** Resolves once the server has closed the connection. */
  async closed(): Promise<void> {
    while (!this.ended) await this.#more()
  }

  close(): void {
    this.socket.destroy()
  }

  /** Against the document, where the request had a line to know its endpoint by. */
  #checked(answer: RawAnswer): RawAnswer {
    const asked = this.#asked.shift()
    const contentType = answer.headers.get('content-type') ?? null
    if (asked !== undefined) takeDown({ ...asked, status: answer.status, contentType, text: answer.body })
    return answer
  }

  #end(): void {
    this.ended = true
    this.#wake()
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #parse(head: boolean): RawAnswer | undefined {
    const end = this.#received.indexOf('\r\n\r\n')
    if (end < 0) return undefined
    const [line = '', ...fields] = this.#received.subarray(0, end).toString('latin1').split('\r\n')
    const headers = new Map(fields.map((field) => splitField(field)))
    const length = head ? 0 : Number(headers.get('content-length') ?? 0)
    if (this.#received.length < end + 4 + length) return undefined
    const body = this.#received.subarray(end + 4, end + 4 + length).toString('utf8')
    this.#received = this.#received.subarray(end + 4 + length)
    return { status: Number(line.split(' ')[1]), headers, body }
  }
}

function splitField(field: string): [string, string] {
  const colon = field.indexOf(':')
  return [field.slice(0, colon).toLowerCase(), field.slice(colon + 1).trim()]
}

function requestLines(text: string): { method: string; url: string }[] {
  const lines = text.matchAll(/^([A-Z]+) (\/(?:v1\/\S*)?) HTTP\/1\.1\r$/gm)
  return [...lines].map(([, method = '', url = '']) => ({ method, url }))
}
