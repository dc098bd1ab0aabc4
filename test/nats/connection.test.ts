import { createServer } from 'node:net'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { connectBroker, versionFault } from '../../internal/nats/connection.ts'
import { natsAccount } from '../support/servers.ts'
import { brokerAt } from './support.ts'

const report = { connection: () => {}, warning: () => {} }

async function refusal(servers: string[]): Promise<string> {
  try {
    const connection = await connectBroker({ servers }, 1, report)
    await connection.close()
  } catch (error) {
    expect((error as Error).name).to.equal('UnusableBrokerError')
    return (error as Error).message
  }
  throw new Error('was not refused')
}

describe('connection to the broker', () => {
  it('takes user and password from the address, and knows the server', async () => {
    const { url } = await natsAccount()
    const connection = await connectBroker({ servers: [url] }, 1, report)
    expect(connection.connected).to.equal(true)
    expect(connection.serverVersion).to.match(/^2\.\d+\.\d+/)
    expect(connection.maxPayload).to.be.at.least(1024 * 1024)
    await connection.close()
    expect(connection.connected).to.equal(false)
  })

  it('takes them beside it as well, and names only the address when they are wrong', async () => {
    const { port, user, password } = await natsAccount()
    const servers = [`127.0.0.1:${port}`]
    await (await connectBroker({ servers, user, password }, 1, report)).close()
    const text = await refusal([`nats://${user}:wrong-secret@127.0.0.1:${port}`])
    expect(text).to.contain(`127.0.0.1:${port}`).and.not.contain('wrong-secret')
  })

  it('refuses an address that is none, without its password, and one where nobody listens', async () => {
    // A password with a slash in it makes no URL.
    for (const address of ['me:hidden@:::', 'me:hid/den@host:1']) {
      const text = await refusal([`nats://${address}`])
      expect(text)
        .to.contain('not the address')
        .and.not.match(/hid|den/)
    }
    expect(await refusal(['127.0.0.1:1'])).to.contain('no NATS server at 127.0.0.1:1')
  })

  it('refuses a server that is too old, in one line', async () => {
    const info = { server_id: 'S', version: '2.11.3', proto: 1, headers: true, max_payload: 1_048_576 }
    const server = createServer((socket) => {
      socket.write(`INFO ${JSON.stringify(info)}\r\n`)
      socket.on('error', () => {})
      socket.on('data', (chunk) => chunk.includes('PING') && socket.write('PONG\r\n'))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    expect(await refusal([`127.0.0.1:${port}`])).to.equal('NATS server 2.11.3 is too old: 2.11.4 is needed')
    server.close()
  })

  it('judges versions by number', () => {
    const fatal = (version: string) => versionFault(version, 1)?.fatal === true
    expect(
      ['2.9.20', '2.10.29', '2.11.3', '1.99.99', 'odd', ''].filter((version) => !fatal(version)),
    ).to.deep.equal([])
    expect(['2.11.4', '2.11.10', '2.12.0-RC.1', '3.0.0'].filter(fatal)).to.deep.equal([])
    expect(versionFault('2.11.9', 3)).to.include({ fatal: false })
    expect(versionFault('2.11.9', 1)).to.equal(undefined)
    expect(versionFault('2.12.0', 3)).to.equal(undefined)
  })
})

describe('messages between nodes', () => {
  it('reach subscribers with their reply subject until they unsubscribe', async () => {
    const { url } = await natsAccount()
    const [one, other] = [await brokerAt(url), await brokerAt(url)]
    const answer = await new Promise<string>((resolve) => {
      one.broker.subscribe('reply.here', (data, reply) => resolve(`${data.toString()} ${reply}`))
      other.broker.subscribe('shard.0.ask', (data, reply) => other.broker.publish(reply ?? '', data))
      void other.connection.nats
        .flush()
        .then(() => one.broker.publish('shard.0.ask', Buffer.from('hi'), 'reply.here'))
    })
    expect(answer).to.equal('hi undefined')
    const seen: string[] = []
    const end = one.broker.subscribe('x', (data) => seen.push(data.toString()))
    one.broker.publish('x', Buffer.from('1'))
    await one.connection.nats.flush()
    end()
    one.broker.publish('x', Buffer.from('2'))
    await one.connection.nats.flush()
    expect(seen).to.deep.equal(['1'])
    await one.close()
    await other.close()
    expect(() => one.broker.publish('x', Buffer.from('3'))).not.to.throw()
  })

  it('survive a handler that throws', async () => {
    const at = await brokerAt((await natsAccount()).url)
    at.broker.subscribe('x', () => {
      throw new Error('odd message')
    })
    at.broker.publish('x', Buffer.from('1'))
    await at.connection.nats.flush()
    expect(at.warnings).to.deep.equal(['x: odd message'])
    expect((await at.broker.journal(0).state()).messages).to.equal(0)
    await at.close()
  })
})
