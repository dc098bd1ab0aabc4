/**
 * Things that the listener takes from Node without a promise of Node's: these tests fail when Node changes them, and those
 * of pipelining.test.ts.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import { type AddressInfo, connect, Server as NetServer, type Socket } from 'node:net'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { eventually } from '../support/eventually.ts'

describe('the internals of Node that the listener uses', () => {
  let server: Server
  let client: Socket
  let handler: (req: IncomingMessage, res: ServerResponse) => void

  beforeEach(async () => {
    handler = (_req, res) => res.end('{}')
    server = createServer((req, res) => handler(req, res))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    await once(client, 'connect')
  })

  afterEach(async () => {
    client.destroy()
    server.closeAllConnections()
    server.close()
  })

  it('name the answer that a connection is giving, and none between two answers', async () => {
    const socket = new Promise<Socket & { _httpMessage?: ServerResponse | null }>((resolve) => {
      handler = (req, res) => {
        expect(Object.hasOwn(req.socket, '_httpMessage')).to.equal(true)
        expect((req.socket as Socket & { _httpMessage?: ServerResponse })._httpMessage).to.equal(res)
        expect(res.headersSent).to.equal(false)
        res.end('{}')
        resolve(req.socket)
      }
    })
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    const answered = await socket
    await eventually(() => expect(answered._httpMessage ?? null).to.equal(null))
  })

  it('give an answer its socket before they tell of its request, and take it when it is out', async () => {
    const steps: string[] = []
    class Answer extends ServerResponse {
      override assignSocket(socket: Socket): void {
        steps.push(`${this.req.url} has it`)
        super.assignSocket(socket)
      }

      override detachSocket(socket: Socket): void {
        super.detachSocket(socket)
        steps.push(`${this.req.url} lets go`)
      }
    }
    const answering: ServerResponse[] = []
    const own = createServer({ ServerResponse: Answer }, (req, res) => {
      steps.push(`${req.url} is told of`)
      answering.push(res)
    })
    own.listen(0, '127.0.0.1')
    await once(own, 'listening')
    const sender = connect((own.address() as AddressInfo).port, '127.0.0.1')
    sender.write('GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n')
    await eventually(() => expect(answering).to.have.length(2))
    for (const res of answering) res.end('{}')
    await eventually(() => expect(steps.at(-1)).to.equal('/2 lets go'))
    sender.destroy()
    own.close()
    expect(steps).to.deep.equal([
      '/1 has it',
      '/1 is told of',
      '/2 is told of',
      '/1 lets go',
      '/2 has it',
      '/2 lets go',
    ])
  })

  it('tell how much of an answer the system has not taken, also within one long piece', async () => {
    const answering = new Promise<Socket & { _handle?: { writeQueueSize?: number } }>((resolve) => {
      handler = (req, res) => {
        res.end(Buffer.alloc(40_000_000))
        resolve(req.socket)
      }
    })
    client.pause()
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    const socket = await answering
    const left = () => socket._handle?.writeQueueSize ?? -1
    await eventually(() => expect(left()).to.be.within(1, 39_999_999), { timeoutMs: 30_000 })
    const before = left()
    const waiting = socket.writableLength
    client.resume()
    await eventually(() => expect(left()).to.be.within(0, before - 1), { timeoutMs: 30_000 })
    expect(waiting).to.be.above(40_000_000)
    await eventually(() => expect([left(), socket.writableLength]).to.deep.equal([0, 0]), {
      timeoutMs: 30_000,
    })
  })

  it('close the listener alone and leave a connection that is idle', async () => {
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await once(client, 'data')
    let closed = false
    NetServer.prototype.close.call(server, () => {
      closed = true
    })
    expect(server.listening).to.equal(false)
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await once(client, 'data')
    expect(closed).to.equal(false)
    server.closeIdleConnections()
    await eventually(() => expect(closed).to.equal(true))
  })

  it('close idle connections, too, by the close of HTTP: else it would be used instead', async () => {
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await once(client, 'data')
    server.close()
    await once(client, 'close')
  })
})
