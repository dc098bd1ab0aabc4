/**
 * Things that the listener takes from Node without a promise of Node's: these tests fail when Node changes them, and those
 * of pipelining.test.ts.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
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
