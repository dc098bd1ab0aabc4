/**
 * A real name server for tests, over UDP and TCP on one port of 127.0.0.1. It answers as it is told, well or badly, and
 * notes what it was asked. A name that it was told nothing of does not exist.
 */
import { createSocket, type Socket } from 'node:dgram'
import { type AddressInfo, createServer, type Server, type Socket as TcpSocket } from 'node:net'
import packet from 'dns-packet'

export interface NameAnswer {
  /** Of IPv4, IPv6 or both; a family without any is answered with no data. */
  addresses?: readonly string[]
  /** Of the records, s. Default 30. */
  ttl?: number
  /** Instead of addresses: NXDOMAIN, SERVFAIL, REFUSED … */
  rcode?: 'NXDOMAIN' | 'SERVFAIL' | 'REFUSED'
  /** Never answers, for every type or for one. */
  silent?: boolean | 'A' | 'AAAA'
  /** Over UDP only that there is more: the client must come back over TCP. */
  truncated?: boolean
  /** Awaited before the answer. */
  until?: Promise<void>
}

export interface NameQuestion {
  readonly name: string
  readonly type: string
  readonly over: 'udp' | 'tcp'
}

type Message = ReturnType<typeof packet.decode> & { questions?: packet.Question[] }

const TRUNCATED = 1 << 9
const RECURSION_AVAILABLE = 1 << 7
const RCODES = { NXDOMAIN: 3, SERVFAIL: 2, REFUSED: 5 } as const

export class NameServer {
  readonly #udp: Socket
  readonly #tcp: Server
  readonly #clients = new Set<TcpSocket>()
  readonly #answers = new Map<string, NameAnswer>()
  readonly #questions: NameQuestion[] = []
  #deaf = false

  constructor(udp: Socket, tcp: Server) {
    this.#udp = udp
    this.#tcp = tcp
    udp.on('message', (bytes, { port, address }) => {
      this.#answer(bytes, 'udp', (answer) => udp.send(packet.encode(answer), port, address))
    })
    tcp.on('connection', (client) => this.#serve(client))
  }

  /** With its port, as a list of name servers takes it. */
  get address(): string {
    const { address, port } = this.#udp.address()
    return `${address}:${port}`
  }

  /** `*.dead.test` stands for all names below it. */
  on(name: string, answer: NameAnswer): void {
    this.#answers.set(name, answer)
  }

  /** Answers nobody any more, or everybody again. */
  deaf(deaf: boolean): void {
    this.#deaf = deaf
  }

  /** In the order in which they came; of one name, or all. */
  questions(name?: string): NameQuestion[] {
    return this.#questions.filter((question) => name === undefined || question.name === name)
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.destroy()
    await Promise.all([
      new Promise<void>((resolve) => this.#udp.close(resolve)),
      new Promise((resolve) => this.#tcp.close(resolve)),
    ])
  }

  #serve(client: TcpSocket): void {
    this.#clients.add(client)
    client.on('error', () => {})
    client.on('close', () => this.#clients.delete(client))
    let read: Buffer = Buffer.alloc(0)
    client.on('data', (chunk: Buffer) => {
      read = Buffer.concat([read, chunk])
      while (read.length >= 2 && read.length >= 2 + read.readUInt16BE()) {
        const end = 2 + read.readUInt16BE()
        this.#answer(read.subarray(2, end), 'tcp', (answer) => client.write(packet.streamEncode(answer)))
        read = read.subarray(end)
      }
    })
  }

  #answer(bytes: Buffer, over: 'udp' | 'tcp', send: (answer: packet.Packet) => void): void {
    const message: Message = packet.decode(bytes)
    const question = message.questions![0]!
    const name = question.name.toLowerCase()
    this.#questions.push({ name, type: question.type, over })
    const answer = this.#answerTo(name)
    const { silent = false, until } = answer
    if (this.#deaf || silent === true || silent === question.type) return
    const reply = replyTo(message, question, answer, over)
    if (until) until.then(() => send(reply))
    else send(reply)
  }

  #answerTo(name: string): NameAnswer {
    const above = `*${name.slice(Math.max(0, name.indexOf('.')))}`
    return this.#answers.get(name) ?? this.#answers.get(above) ?? { rcode: 'NXDOMAIN' }
  }
}

export async function startNameServer(): Promise<NameServer> {
  const tcp = createServer()
  await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve))
  const udp = createSocket('udp4')
  await new Promise<void>((resolve, reject) => {
    udp.once('error', reject)
    udp.bind((tcp.address() as AddressInfo).port, '127.0.0.1', resolve)
  })
  return new NameServer(udp, tcp)
}

function replyTo(
  { id }: Message,
  question: packet.Question,
  { addresses = [], ttl = 30, rcode, truncated = false }: NameAnswer,
  over: 'udp' | 'tcp',
): packet.Packet {
  const cut = truncated && over === 'udp'
  const flags =
    packet.RECURSION_DESIRED | RECURSION_AVAILABLE | (cut ? TRUNCATED : 0) | (rcode ? RCODES[rcode] : 0)
  const own = addresses.filter((address) => address.includes(':') === (question.type === 'AAAA'))
  const asked = question.type === 'A' || question.type === 'AAAA'
  const answers = own.map((data) => ({ type: question.type as 'A' | 'AAAA', name: question.name, ttl, data }))
  return {
    id: id ?? 0,
    type: 'response',
    flags,
    questions: [question],
    answers: asked && !cut ? answers : [],
  }
}
