import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'

import { eventually } from './eventually.ts'
import { TcpProxy } from './tcp-proxy.ts'

/** Keeps what it received. */
class Peer {
  readonly socket: Socket
  text = ''
  ended = false
  closed = false
  code: string | undefined

  constructor(socket: Socket) {
    this.socket = socket
    socket.setEncoding('utf8')
    socket.on('data', (text: string) => {
      this.text += text
    })
    socket.on('end', () => {
      this.ended = true
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      this.code = error.code
    })
    socket.on('close', () => {
      this.closed = true
    })
  }
}

describe('the TCP proxy of the fault suite', () => {
  let server: Server
  let proxy: TcpProxy
  let peers: Peer[]
  let clients: Peer[]

  beforeEach(async () => {
    peers = []
    clients = []
    server = createServer((socket) => peers.push(new Peer(socket)))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    proxy = await TcpProxy.to((server.address() as { port: number }).port)
  })

  afterEach(async () => {
    for (const { socket } of [...clients, ...peers]) socket.destroy()
    await proxy.close()
    await new Promise((resolve) => server.close(resolve))
  })

  /** A connection through the proxy: the client's end and the server's. */
  async function join(): Promise<{ near: Peer; far: Peer }> {
    const near = new Peer(connect(proxy.port, '127.0.0.1'))
    clients.push(near)
    await once(near.socket, 'connect')
    await eventually(() => peers.length === clients.length)
    return { near, far: peers.at(-1)! }
  }

  const exchanged = async ({ near, far }: { near: Peer; far: Peer }, up: string, down: string) => {
    near.socket.write(up)
    far.socket.write(down)
    await eventually(() => far.text.endsWith(up) && near.text.endsWith(down))
  }

  it('passes bytes, and the end of each side, on', async () => {
    const { near, far } = await join()
    await exchanged({ near, far }, 'up', 'down')
    far.socket.end('last')
    await eventually(() => near.ended && far.closed)
    expect([near.text, far.text]).to.deep.equal(['downlast', 'up'])
  })

  it('passes many bytes to a reader that is slow', async () => {
    const { near, far } = await join()
    far.socket.pause()
    near.socket.end('x'.repeat(8 * 1024 * 1024))
    await eventually(() => near.socket.bytesWritten > 1024 * 1024)
    far.socket.resume()
    await eventually(() => far.ended)
    expect(far.text).to.have.length(8 * 1024 * 1024)
  })

  it('takes as long as it is told, in order', async () => {
    const { near, far } = await join()
    proxy.delay(80)
    const sentAt = performance.now()
    near.socket.write('a')
    await eventually(() => near.socket.bytesWritten === 1)
    near.socket.write('b')
    await eventually(() => far.text === 'ab')
    // Never earlier; how much later is up to the machine.
    expect(performance.now() - sentAt).to.be.at.least(79)
    proxy.heal()
    await exchanged({ near, far }, 'c', 'd')
  })

  it('is as narrow as it is told, for all connections together', async () => {
    const [one, two] = [await join(), await join()]
    proxy.throttle(100_000)
    const sentAt = performance.now()
    one.near.socket.write('x'.repeat(10_000))
    await eventually(() => one.near.socket.bytesWritten === 10_000)
    two.near.socket.write('y'.repeat(5_000))
    await eventually(() => two.far.text.length === 5_000)
    expect(one.far.text).to.have.length(10_000)
    expect(performance.now() - sentAt).to.be.at.least(149)
    proxy.heal()
    await exchanged(one, 'c', 'd')
  })

  for (const [silent, other] of [
    ['up', 'down'],
    ['down', 'up'],
  ] as const) {
    it(`silent ${silent}: the other direction goes on, what was sent arrives with the healing`, async () => {
      const { near, far } = await join()
      const [sender, receiver] = silent === 'up' ? [near, far] : [far, near]
      proxy.silence(silent)
      sender.socket.write('held')
      for (const word of ['one', 'two']) {
        receiver.socket.write(word)
        await eventually(() => sender.text.endsWith(word))
      }
      expect([receiver.text, proxy.underWay], other).to.deep.equal(['', 4])
      proxy.heal()
      await eventually(() => receiver.text === 'held')
      expect(proxy.underWay).to.equal(0)
    })
  }

  it('a black hole lets nothing through, tells nobody, and gives up late what a dead client had sent', async () => {
    const { near, far } = await join()
    proxy.blackhole()
    near.socket.write('last words')
    await eventually(() => near.socket.bytesWritten > 0)
    near.socket.destroy()
    await eventually(() => near.closed)
    const other = await join()
    other.near.socket.write('new')
    other.far.socket.write('new')
    await eventually(() => other.far.socket.bytesWritten > 0)
    expect([far.text, far.ended, far.closed]).to.deep.equal(['', false, false])
    expect([other.near.text, other.far.text]).to.deep.equal(['', ''])
    proxy.heal()
    await eventually(() => far.text === 'last words' && far.closed)
    await eventually(() => other.near.text === 'new' && other.far.text === 'new')
  })

  it('cuts connections with RST, also in a black hole, and lets new ones through', async () => {
    const first = await join()
    proxy.reset()
    await eventually(() => first.near.closed && first.far.closed)
    expect([first.near.code, first.far.code]).to.deep.equal(['ECONNRESET', 'ECONNRESET'])
    proxy.blackhole()
    const second = await join()
    second.near.socket.write('lost')
    proxy.reset()
    await eventually(() => second.near.closed && second.far.closed)
    proxy.heal()
    await exchanged(await join(), 'up', 'down')
    expect(second.far.text).to.equal('')
  })
  for (const [direction, other] of [
    ['up', 'down'],
    ['down', 'up'],
  ] as const) {
    it(`cut ${direction}: the bytes before it arrive, then every connection is closed, once`, async () => {
      const ends = await join()
      const bystander = await join()
      proxy.cutAt({ direction, afterBytes: 6 })
      const [sender, receiver] = direction === 'up' ? [ends.near, ends.far] : [ends.far, ends.near]
      receiver.socket.write(`all that goes ${other}`)
      sender.socket.write('four')
      await eventually(() => receiver.text === 'four' && sender.text === `all that goes ${other}`)
      sender.socket.write('five!')
      await eventually(() => [ends, bystander].every(({ near, far }) => near.closed && far.closed))
      expect([receiver.text, proxy.cuts]).to.deep.equal(['fourfi', 1])
      await exchanged(await join(), 'more than it took', 'more than it took')
      expect(proxy.cuts).to.equal(1)
    })
  }

  it('forgets a cut that it is told to', async () => {
    proxy.cutAt({ direction: 'up', afterBytes: 0 })
    proxy.cutAt(null)
    await exchanged(await join(), 'up', 'down')
    expect(proxy.cuts).to.equal(0)
  })
})
