/** What a client that does not read its answer, or reads it slowly, may hold (docs/architecture/protocol.md, "Connections"). */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import {
  ANSWER_STALL_MS,
  ANSWER_TIMEOUT_MS,
  type Listener,
  type ListenerOptions,
  listen,
} from '../../internal/http/listener.ts'
import type { Handler } from '../../internal/http/turns.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { eventually } from '../support/eventually.ts'

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
/** More than the buffers of two sockets take. */
const LONG = Buffer.alloc(40_000_000, 'x')
/** What a steady reader takes at a time at least. */
const PIECE = 5_000_000
const STEP_MS = 1_000
/** For an answer that is to take too long. */
const HASTY_MS = 2 * ANSWER_STALL_MS
const PATIENT = { timeoutMs: 60_000 }

describe('an answer', () => {
  let clock: ManualClock | undefined
  let listener: Listener | undefined
  let clients: Socket[] = []
  let handler: Handler
  /** Of each request, in their order. */
  let answers: ServerResponse[]

  beforeEach(() => serve())

  afterEach(stop)

  async function serve(options: Partial<ListenerOptions> = {}): Promise<void> {
    await stop()
    clock = new ManualClock()
    answers = []
    handler = (_req, res) => res.end(LONG)
    const answer: Handler = (req, res) => {
      answers.push(res)
      return handler(req, res)
    }
    const all = { host: '127.0.0.1', port: 0, ...options }
    listener = await listen(clock, answer, { closing: false }, all)
  }

  async function stop(): Promise<void> {
    for (const client of clients) client.destroy()
    clients = []
    const closed = listener?.close(0)
    clock?.advance(STEP_MS)
    await closed
  }

  /** A connection that has asked and reads nothing. */
  async function asking(): Promise<Socket> {
    const client = connect({ port: listener!.port, host: '127.0.0.1' })
    clients.push(client)
    client.on('error', () => {})
    client.pause()
    client.write(GET)
    await once(client, 'connect')
    return client
  }

  /** The server's side of the connection that came last, once its answer is stuck. */
  async function stuck(): Promise<Socket> {
    const socket = await eventually(() => answers.at(-1)?.socket ?? false, PATIENT)
    await eventually(() => socket.writableLength > 0 && left(socket) > 0, PATIENT)
    await still(socket)
    return socket
  }

  function pass(ms: number): void {
    for (let passed = 0; passed < ms; passed += STEP_MS) clock!.advance(STEP_MS)
  }

  /** Reads until the condition holds, and no further; the bytes that it read. */
  async function readUntil(client: Socket, isEnough: () => boolean): Promise<number> {
    let count = 0
    const onData = (chunk: Buffer): void => {
      count += chunk.length
      if (isEnough()) client.pause()
    }
    client.on('data', onData)
    client.resume()
    await eventually(isEnough, PATIENT)
    client.pause()
    client.off('data', onData)
    return count
  }

  it('that nobody reads is given up after a while', async () => {
    await asking()
    const socket = await stuck()
    pass(ANSWER_STALL_MS - STEP_MS)
    expect(socket.destroyed).to.equal(false)
    pass(ANSWER_STALL_MS / 2)
    expect(socket.destroyed).to.equal(true)
    await eventually(() => answers[0]!.closed, PATIENT)
  })

  it('that nobody reads resets its connection, so that the system holds nothing of it either', async () => {
    const client = await asking()
    await stuck()
    const failed = once(client, 'error')
    pass(2 * ANSWER_STALL_MS)
    client.resume()
    const [error] = (await failed) as [NodeJS.ErrnoException]
    expect(error.code).to.equal('ECONNRESET')
  })

  it('that is read slowly but steadily comes whole', async () => {
    const client = await asking()
    const socket = await stuck()
    let [count, passed] = [0, 0]
    while (!answers[0]!.writableFinished) {
      const before = left(socket)
      count += await readUntil(client, () => left(socket) < before - PIECE || answers[0]!.writableFinished)
      pass(ANSWER_STALL_MS - 2 * STEP_MS)
      passed += ANSWER_STALL_MS - 2 * STEP_MS
    }
    expect(passed, 'longer than one that is not read').to.be.above(ANSWER_STALL_MS)
    const total = headLength(answers[0]!) + LONG.length
    const unread = total - count
    let rest = 0
    client.on('data', (chunk: Buffer) => {
      rest += chunk.length
    })
    client.resume()
    await eventually(() => rest === unread, PATIENT)
  })

  it('that is read a little at a time is given up, too, when it takes too long', async () => {
    await serve({ answerTimeoutMs: HASTY_MS })
    const client = await asking()
    const socket = await stuck()
    let passed = 0
    while (!socket.destroyed && left(socket) > 0) {
      const before = left(socket)
      await readUntil(client, () => left(socket) < before)
      await still(socket)
      pass(ANSWER_STALL_MS - 2 * STEP_MS)
      passed += ANSWER_STALL_MS - 2 * STEP_MS
    }
    expect(socket.destroyed).to.equal(true)
    expect(passed).to.be.within(HASTY_MS, HASTY_MS + ANSWER_STALL_MS)
  })

  it('that is still to come takes as long as it takes, and so does the next request', async () => {
    handler = () => {}
    const client = await asking()
    await eventually(() => answers.length === 1, PATIENT)
    for (const n of [1, 2]) {
      pass(2 * ANSWER_TIMEOUT_MS)
      answers.at(-1)!.end('{}')
      const [chunk] = await once(client.resume(), 'data')
      expect(String(chunk)).to.match(/^HTTP\/1.1 200 /)
      pass(2 * ANSWER_TIMEOUT_MS)
      client.write(GET)
      await eventually(() => answers.length === n + 1, PATIENT)
    }
  })
})

/** Bytes that the server's side still holds. */
function left(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { _handle: { writeQueueSize: number } | null }
  return handle?.writeQueueSize ?? 0
}

/** Resolves once the system takes no more. */
async function still(socket: Socket): Promise<void> {
  let last = -1
  await eventually(
    () => {
      const same = left(socket) === last
      last = left(socket)
      return same
    },
    { timeoutMs: 60_000, everyMs: 100 },
  )
}

function headLength(res: ServerResponse): number {
  return (res as ServerResponse & { _header: string })._header.length
}
