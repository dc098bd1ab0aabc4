import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { eventually } from '../support/eventually.ts'
import { type NatsAccess, natsAccount, natsConnection } from '../support/servers.ts'
import { brokerAt, type TestBroker } from './support.ts'

describe('core messages of a broker', () => {
  let account: NatsAccess
  let here: TestBroker
  let there: TestBroker
  /** All that passes the server. */
  const passed: string[] = []

  before(async () => {
    account = await natsAccount()
    ;[here, there] = [await brokerAt(account.url), await brokerAt(account.url)]
    const spy = await natsConnection(account)
    spy.subscribe('told.*', { callback: (_, { subject, data }) => passed.push(`${subject} ${data}`) })
    await spy.flush()
  })

  after(() => Promise.all([here.close(), there.close()]))

  function heardAt({ broker }: TestBroker, subject: string): { heard: string[]; end: () => void } {
    const heard: string[] = []
    const end = broker.subscribe(subject, (data) => heard.push(String(data)))
    return { heard, end }
  }

  /** Everything that was published before has passed by then. */
  async function untilPassed({ broker }: TestBroker, mark: string): Promise<void> {
    broker.publish('told.mark', Buffer.from(mark))
    await eventually(() => passed.includes(`told.mark ${mark}`))
  }

  it('are told within the process to whoever listens there, after the running turn', async () => {
    const { heard, end } = heardAt(here, 'told.here')
    here.broker.tell('told.here', Buffer.from('one'))
    expect(heard).to.deep.equal([])
    await Promise.resolve()
    expect(heard).to.deep.equal(['one'])
    await untilPassed(here, 'here')
    expect(heard).to.deep.equal(['one'])
    expect(passed).to.not.include('told.here one')
    end()
  })

  it('pass the server to whoever listens elsewhere', async () => {
    const { heard, end } = heardAt(there, 'told.there')
    await there.connection.nats.flush()
    here.broker.tell('told.there', Buffer.from('two'))
    await eventually(() => heard.length > 0)
    expect(heard).to.deep.equal(['two'])
    end()
  })

  it('are told to nobody whose subscription has ended, also when it ends in the same turn', async () => {
    const { heard, end } = heardAt(here, 'told.gone')
    here.broker.tell('told.gone', Buffer.from('three'))
    end()
    here.broker.tell('told.gone', Buffer.from('four'))
    await untilPassed(here, 'gone')
    expect(heard).to.deep.equal([])
    expect(passed).to.include('told.gone four').and.not.include('told.gone three')
  })

  it('end nothing when their handler throws', async () => {
    const end = here.broker.subscribe('told.wrong', () => {
      throw new Error('no such pack')
    })
    here.broker.tell('told.wrong', Buffer.from('five'))
    here.broker.publish('told.wrong', Buffer.from('six'))
    await eventually(() => here.warnings.length >= 2)
    expect(here.warnings).to.deep.equal(['told.wrong: no such pack', 'told.wrong: no such pack'])
    await untilPassed(here, 'wrong')
    end()
  })
})
