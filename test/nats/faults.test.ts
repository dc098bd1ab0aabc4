import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import type { NatsServer } from '../../internal/embedded/nats-server.ts'
import type { AppendAnswer, Log } from '../../internal/shard/broker.ts'
import { eventually } from '../support/eventually.ts'
import { NatsProxy } from '../support/nats-proxy.ts'
import { ownNats } from '../support/servers.ts'
import { brokerAt, Received, type TestBroker } from './support.ts'

const TIMEOUT_MS = 1_000

/** What a caller does: again under the same id until the broker says what became of it. */
async function untilStored(log: Log, msgId: string): Promise<AppendAnswer & { kind: 'stored' }> {
  return eventually(
    async () => {
      const answer = await log.append(Buffer.from(msgId), { msgId, timeoutMs: TIMEOUT_MS })
      return answer.kind === 'stored' && answer
    },
    { timeoutMs: 15_000 },
  )
}

describe('a broker that fails', () => {
  const ending: (() => Promise<unknown>)[] = []

  async function started(): Promise<{ server: NatsServer; at: TestBroker }> {
    const server = await ownNats({ sync: 'always' })
    const at = await brokerAt(server.url)
    ending.push(
      () => at.close(),
      () => server.stop(),
    )
    return { server, at }
  }

  async function behindProxy(): Promise<{ proxy: NatsProxy; at: TestBroker }> {
    const server = await ownNats()
    const proxy = await NatsProxy.to(server.port)
    const at = await brokerAt(proxy.through(server.url))
    ending.push(
      () => at.close(),
      () => proxy.close(),
      () => server.stop(),
    )
    return { proxy, at }
  }

  afterEach(async () => {
    for (const end of ending.splice(0)) await end()
  })

  it('killed in the middle of appends and restarted: each id is stored exactly once', async () => {
    const { server, at } = await started()
    const journal = at.broker.journal(0)
    const { firstSeq } = await journal.state()
    const received = new Received()
    const reading = journal.follow(firstSeq, received.handler, received.onError)
    const ids = Array.from({ length: 1_000 }, (_, i) => `append-${i}`)
    const waiting = [...ids]
    const ambiguous: string[] = []
    let answered = 0
    // Fifty at a time: those in flight at the kill, and those that follow, stay without an answer.
    const writer = async () => {
      for (let msgId = waiting.shift(); msgId !== undefined; msgId = waiting.shift()) {
        const answer = await journal.append(Buffer.from(msgId), { msgId, timeoutMs: TIMEOUT_MS })
        if (answer.kind === 'unknown') ambiguous.push(msgId)
        else if (++answered === 200) server.kill('SIGKILL')
      }
    }
    await Promise.all(Array.from({ length: 50 }, writer))
    expect(ambiguous, 'the kill came too late to leave anything open').not.to.deep.equal([])
    await server.restart()
    await Promise.all(ambiguous.map((msgId) => untilStored(journal, msgId)))
    const stored: (string | null)[] = []
    for await (const { msgId } of journal.range(firstSeq, Number.MAX_SAFE_INTEGER)) stored.push(msgId)
    expect([...stored].sort()).to.deep.equal([...ids].sort())
    await eventually(() => received.messages.length === ids.length)
    await reading.stop()
    expect(received.messages.map(({ msgId }) => msgId)).to.deep.equal(stored)
  }).timeout(40_000)

  it('keeps sequence and positions of an emptied-but-one stream over a kill', async () => {
    const { server, at } = await started()
    const journal = at.broker.journal(0)
    await untilStored(journal, 'a')
    const { seq } = await untilStored(journal, 'b')
    await journal.purgeBelow(seq + 1)
    server.kill('SIGKILL')
    await server.restart()
    expect((await untilStored(journal, 'c')).seq).to.equal(seq + 1)
    expect((await journal.state()).firstSeq).to.equal(seq)
  }).timeout(40_000)

  it('answers what is pending with unknown as soon as the connection is gone', async () => {
    const { proxy, at } = await behindProxy()
    proxy.swallow(({ subject }) => subject.startsWith('_INBOX'))
    const pending = at.broker.journal(0).append(Buffer.from('x'), { msgId: 'x', timeoutMs: 60_000 })
    await eventually(() => proxy.swallowed > 0)
    proxy.reset()
    expect(await pending).to.deep.equal({ kind: 'unknown', error: 'disconnected' })
  })

  it('loses a PubAck: the repetition under the same id finds what was stored', async () => {
    const { proxy, at } = await behindProxy()
    const journal = at.broker.journal(0)
    proxy.swallow(({ subject }) => subject.startsWith('_INBOX'))
    const lost = await journal.append(Buffer.from('x'), { msgId: 'x', timeoutMs: 100 })
    expect(lost).to.deep.equal({ kind: 'unknown', error: 'no answer in time' })
    proxy.disarm()
    const { firstSeq } = await journal.state()
    expect(await journal.append(Buffer.from('x'), { msgId: 'x', timeoutMs: TIMEOUT_MS })).to.deep.equal({
      kind: 'stored',
      seq: firstSeq,
      duplicate: true,
    })
  })

  it('loses messages of a reading: the gap is noticed and filled', async () => {
    const { proxy, at } = await behindProxy()
    const journal = at.broker.journal(0)
    const { seq } = await untilStored(journal, 'a')
    const received = new Received()
    const reading = journal.follow(seq, received.handler, received.onError)
    await eventually(() => received.messages.length === 1)
    let losing = true
    proxy.swallow(({ reply }) => {
      const lose = losing && reply.startsWith('$JS.ACK')
      if (lose) losing = false
      return lose
    })
    await untilStored(journal, 'b')
    await eventually(() => proxy.swallowed === 1)
    await untilStored(journal, 'c')
    await eventually(() => received.messages.length === 3)
    await reading.stop()
    expect(received.sequences).to.deep.equal([seq, seq + 1, seq + 2])
    expect(received.errors.map(({ message }) => message).join()).to.contain('a gap')
  })

  it('cuts the connection: readings go on, and listeners hear of it', async () => {
    const { proxy, at } = await behindProxy()
    const journal = at.broker.journal(0)
    const { seq } = await untilStored(journal, 'a')
    const received = new Received()
    const reading = journal.follow(seq, received.handler, received.onError)
    let reconnects = 0
    const unsubscribe = at.broker.onReconnect(() => reconnects++)
    const heard: string[] = []
    at.broker.subscribe('to.us', (data) => heard.push(data.toString()))
    await eventually(() => received.messages.length === 1)
    proxy.reset()
    await eventually(() => reconnects === 1)
    await untilStored(journal, 'b')
    await eventually(() => received.messages.length === 2)
    at.broker.publish('to.us', Buffer.from('still here'))
    await eventually(() => heard.length === 1)
    unsubscribe()
    await reading.stop()
    expect(received.sequences).to.deep.equal([seq, seq + 1])
  })
})
