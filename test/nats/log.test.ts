import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import type { Log, LogMessage, Reading } from '../../internal/shard/broker.ts'
import { eventually } from '../support/eventually.ts'
import { natsAccount } from '../support/servers.ts'
import { brokerAt, Received, type TestBroker } from './support.ts'

const TIMEOUT_MS = 5_000
let serial = 0

async function fill(log: Log, bodies: Uint8Array[]): Promise<number[]> {
  const answers = await Promise.all(
    bodies.map((body) => log.append(body, { msgId: `m-${serial++}`, timeoutMs: TIMEOUT_MS })),
  )
  return answers.map((answer) => {
    if (answer.kind !== 'stored') throw new Error(JSON.stringify(answer))
    return answer.seq
  })
}

const numbered = (count: number) => Array.from({ length: count }, (_, i) => Buffer.from(`body ${i}`))

async function collect(messages: AsyncIterable<LogMessage>): Promise<LogMessage[]> {
  const list: LogMessage[] = []
  for await (const message of messages) list.push(message)
  return list
}

describe('a log', () => {
  let at: TestBroker
  let shard = 0
  let log: Log

  before(async () => {
    at = await brokerAt((await natsAccount()).url, 16)
  })
  beforeEach(() => {
    log = at.broker.journal(shard++)
  })
  after(() => at.close())

  it('knows its state, empty and not', async () => {
    const empty = await log.state()
    expect(empty.messages).to.equal(0)
    expect(empty.firstSeq).to.equal(empty.lastSeq + 1)
    expect(empty.firstSeq).to.be.above(1e15)
    expect(await log.last()).to.equal(undefined)
    const [first, second] = await fill(log, numbered(2))
    expect(first).to.equal(empty.firstSeq)
    expect(await log.state()).to.include({
      firstSeq: first,
      lastSeq: second,
      messages: 2,
      maxBytes: empty.maxBytes,
    })
  })

  it('gets single messages from the leader, and undefined for what is not there', async () => {
    const [first = 0, second = 0] = await fill(log, numbered(2))
    expect((await log.get(first))?.data.toString()).to.equal('body 0')
    expect((await log.last())?.seq).to.equal(second)
    expect(await log.get(second + 1)).to.equal(undefined)
    await log.purgeBelow(second)
    expect(await log.get(first)).to.equal(undefined)
  })

  it('follows from a position: what is there, then what comes, as it was stored', async () => {
    const bodies = [...numbered(3), Buffer.alloc(0)]
    const sequences = await fill(log, bodies)
    const received = new Received()
    const reading = log.follow(sequences[1] ?? 0, received.handler, received.onError)
    await eventually(() => received.messages.length === 3)
    const [later] = await fill(log, [Buffer.from('later')])
    await eventually(() => received.messages.length === 4)
    await reading.stop()
    expect(received.sequences).to.deep.equal([...sequences.slice(1), later])
    expect(received.messages.map(({ data }) => data.toString())).to.deep.equal([
      'body 1',
      'body 2',
      '',
      'later',
    ])
    expect(received.errors).to.deep.equal([])
    for (const message of received.messages) expect(message).to.deep.equal(await log.get(message.seq))
  })

  it('waits on an empty stream, and beyond the end of one that is not', async () => {
    const { firstSeq } = await log.state()
    const received = new Received()
    const readings = [log.follow(firstSeq, received.handler, received.onError)]
    const [first = 0] = await fill(log, numbered(1))
    await eventually(() => received.messages.length === 1)
    const beyond = new Received()
    readings.push(log.follow(first + 2, beyond.handler, beyond.onError))
    await fill(log, numbered(2))
    await eventually(() => beyond.messages.length === 1)
    expect(beyond.sequences).to.deep.equal([first + 2])
    await Promise.all(readings.map((reading) => reading.stop()))
  })

  it('hands a message over once, in order, one call at a time, however slow the handler is', async () => {
    const sequences = await fill(log, numbered(3_000))
    const seen: number[] = []
    let running = 0
    const reading = log.follow(
      sequences[0] ?? 0,
      async (messages) => {
        expect(++running).to.equal(1)
        await new Promise((resolve) => setImmediate(resolve))
        for (const { seq } of messages) seen.push(seq)
        running--
      },
      (error) => expect.fail(error.message),
    )
    await eventually(() => seen.length >= sequences.length)
    await reading.stop()
    expect(seen).to.deep.equal(sequences)
  })

  it('holds the broker back while the handler is busy: memory is bounded', async () => {
    const size = 500_000
    const sequences = await fill(
      log,
      Array.from({ length: 60 }, () => Buffer.alloc(size, 1)),
    )
    let release = () => {}
    const received: number[] = []
    const busy = new Promise<void>((resolve) => {
      release = resolve
    })
    const reading = log.follow(
      sequences[0] ?? 0,
      (messages) => {
        received.push(...messages.map(({ seq }) => seq))
        return received.length === messages.length ? busy : undefined
      },
      () => {},
    )
    await eventually(() => received.length > 0)
    // Everything that was pulled has arrived when the broker has nothing under way any more.
    const manager = await at.connection.nats.jetstreamManager()
    const stream = `JOURNAL_${shard - 1}`
    const delivered = async () => {
      const [consumer] = await manager.consumers.list(stream).next()
      return consumer?.delivered.stream_seq
    }
    let before = -1
    const last = await eventually(
      async () => {
        const now = (await delivered()) ?? -1
        const settled = now > 0 && now === before
        before = now
        return settled && now
      },
      { everyMs: 100 },
    )
    expect(last - (sequences[0] ?? 0) + 1).to.be.below(25)
    release()
    await eventually(() => received.length === sequences.length)
    expect(received).to.deep.equal(sequences)
    await reading.stop()
  })

  it('reads messages larger than a whole pull', async () => {
    const huge = Buffer.alloc(6 * 1024 * 1024, 7)
    const sequences = await fill(log, [...numbered(2), huge, huge, ...numbered(2)])
    const received = new Received()
    const reading = log.follow(sequences[0] ?? 0, received.handler, received.onError)
    await eventually(() => received.messages.length === 6)
    await reading.stop()
    expect(received.errors).to.deep.equal([])
    expect(huge.equals(received.messages[3]?.data ?? Buffer.alloc(0))).to.equal(true)
  })

  it('begins anew by itself when its consumer is deleted by hand, without a gap or a repeat', async () => {
    const sequences = await fill(log, numbered(100))
    const received = new Received()
    const reading = log.follow(sequences[0] ?? 0, received.handler, received.onError)
    await eventually(() => received.messages.length === 100)
    const manager = await at.connection.nats.jetstreamManager()
    const stream = `JOURNAL_${shard - 1}`
    for (const { name } of await manager.consumers.list(stream).next())
      await manager.consumers.delete(stream, name)
    await eventually(() => received.errors.length > 0)
    const more = await fill(log, numbered(100))
    await eventually(() => received.messages.length >= 200)
    await reading.stop()
    expect(received.sequences).to.deep.equal([...sequences, ...more])
  })

  it('stops for good, also from inside the handler, and when the handler throws', async () => {
    const sequences = await fill(log, numbered(10))
    const calls = { stopping: 0, throwing: 0 }
    const stopping: Reading = log.follow(
      sequences[0] ?? 0,
      () => {
        calls.stopping++
        void stopping.stop()
      },
      () => {},
    )
    const errors: Error[] = []
    log.follow(
      sequences[0] ?? 0,
      () => {
        calls.throwing++
        throw new Error('broken')
      },
      (error) => errors.push(error),
    )
    await eventually(() => calls.stopping > 0 && errors.length > 0)
    await fill(log, numbered(10))
    const witness = new Received()
    const reading = log.follow(sequences[0] ?? 0, witness.handler, witness.onError)
    await eventually(() => witness.messages.length === 20)
    await reading.stop()
    expect(calls).to.deep.equal({ stopping: 1, throwing: 1 })
    expect(errors.map(({ message }) => message)).to.deep.equal(['broken'])
  })

  it('leaves no consumer behind', async () => {
    const received = new Received()
    const sequences = await fill(log, numbered(1))
    const reading = log.follow(sequences[0] ?? 0, received.handler, received.onError)
    await eventually(() => received.messages.length === 1)
    await reading.stop()
    const manager = await at.connection.nats.jetstreamManager()
    const stream = `JOURNAL_${shard - 1}`
    await eventually(async () => (await manager.consumers.list(stream).next()).length === 0)
  })

  it('reads ranges, also purged, empty and open ones', async () => {
    const sequences = await fill(log, numbered(50))
    const [first = 0] = sequences
    const read = async (from: number, to: number) =>
      (await collect(log.range(from, to))).map(({ seq }) => seq - first)
    expect(await read(first + 3, first + 5)).to.deep.equal([3, 4, 5])
    expect(await read(first + 48, first + 1_000)).to.deep.equal([48, 49])
    expect(await read(first + 50, first + 60)).to.deep.equal([])
    expect(await read(first + 5, first + 4)).to.deep.equal([])
    await log.purgeBelow(first + 10)
    expect(await read(first, first + 11)).to.deep.equal([10, 11])
    expect(await read(first, first + 9)).to.deep.equal([])
  })

  it('ends a range that is purged while it is read', async () => {
    const sequences = await fill(
      log,
      Array.from({ length: 40 }, () => Buffer.alloc(400_000)),
    )
    const [first = 0] = sequences
    const seen: number[] = []
    for await (const { seq } of log.range(first, first + 38)) {
      if (seen.length === 0) await log.purgeBelow(first + 39)
      seen.push(seq)
    }
    expect(seen.length).to.be.below(39)
    expect(seen).to.deep.equal(sequences.slice(0, seen.length))
  })

  it('purges nothing below where it begins, for NATS takes a limit of 1 for none', async () => {
    const [first = 0] = await fill(log, numbered(3))
    for (const below of [1, 0, first - 1, first]) {
      await log.purgeBelow(below)
      expect(await log.state(), `below ${below}`).to.include({ firstSeq: first, messages: 3 })
    }
  })

  it('purges below a position, but never the last message', async () => {
    await log.purgeBelow(1e15)
    const sequences = await fill(log, numbered(10))
    const [first = 0] = sequences
    await log.purgeBelow(first + 4)
    expect(await log.state()).to.include({ firstSeq: first + 4, messages: 6 })
    await log.purgeBelow(first + 1_000)
    expect(await log.state()).to.include({ firstSeq: first + 9, lastSeq: first + 9, messages: 1 })
    await log.purgeBelow(first + 1_000)
    expect((await log.last())?.seq).to.equal(first + 9)
  })
})
