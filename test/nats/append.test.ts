import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { readPubAck } from '../../internal/nats/log/append.ts'
import { appendHeaders } from '../../internal/nats/log/publish-headers.ts'
import type { AppendAnswer, Log } from '../../internal/shard/broker.ts'
import { natsAccount } from '../support/servers.ts'
import { brokerAt, type TestBroker } from './support.ts'

const body = Buffer.from('body')
const TIMEOUT_MS = 5_000
let serial = 0
const newId = () => `id-${serial++}`

async function storedSeq(answer: Promise<AppendAnswer>): Promise<number> {
  const settled = await answer
  if (settled.kind !== 'stored') throw new Error(JSON.stringify(settled))
  return settled.seq
}

describe('append', () => {
  let at: TestBroker
  let journal: Log

  before(async () => {
    at = await brokerAt((await natsAccount()).url)
    journal = at.broker.journal(0)
  })
  after(() => at.close())

  it('stores under a position that counts microseconds since 1970', async () => {
    const before = Date.now() * 1000
    const seq = await storedSeq(journal.append(body, { msgId: newId(), timeoutMs: TIMEOUT_MS }))
    expect(seq).to.be.within(before - 60e6, before + 60e6)
    expect(await storedSeq(journal.append(body, { msgId: newId(), timeoutMs: TIMEOUT_MS }))).to.equal(seq + 1)
  })

  it('keeps bytes, id and subject as they were given', async () => {
    const inbox = at.broker.inbox(0)
    const msgId = newId()
    const seq = await storedSeq(
      inbox.append(Buffer.from([0, 255, 10]), { subject: 'items.0.b.g', msgId, timeoutMs: TIMEOUT_MS }),
    )
    const message = await inbox.get(seq)
    expect(message).to.deep.include({ seq, msgId })
    expect([...(message?.data ?? [])]).to.deep.equal([0, 255, 10])
    const stored = await (await at.connection.nats.jetstreamManager()).streams.getMessage('INBOX_0', { seq })
    expect(stored.subject).to.equal('items.0.b.g')
    expect(stored.header.get('Nats-Msg-Id')).to.equal(msgId)
  })

  it('answers the same id with the same position, marked as duplicate', async () => {
    const msgId = newId()
    const first = await journal.append(body, { msgId, timeoutMs: TIMEOUT_MS })
    const again = await journal.append(body, { msgId, timeoutMs: TIMEOUT_MS })
    expect(again).to.deep.equal({ ...first, duplicate: true })
  })

  it('refuses another last sequence than the expected one, and stores nothing', async () => {
    const last = await storedSeq(journal.append(body, { msgId: newId(), timeoutMs: TIMEOUT_MS }))
    for (const expectLastSeq of [last - 1, last + 1]) {
      const answer = await journal.append(body, { msgId: newId(), expectLastSeq, timeoutMs: TIMEOUT_MS })
      expect(answer).to.deep.equal({ kind: 'wrong-sequence' })
    }
    expect((await journal.state()).lastSeq).to.equal(last)
    expect(
      await storedSeq(journal.append(body, { msgId: newId(), expectLastSeq: last, timeoutMs: TIMEOUT_MS })),
    ).to.equal(last + 1)
  })

  it('matches many answers at once to their appends', async () => {
    const sent = Array.from({ length: 500 }, () =>
      journal.append(body, { msgId: newId(), timeoutMs: TIMEOUT_MS }),
    )
    const sequences = await Promise.all(sent.map(storedSeq))
    expect(sequences).to.deep.equal(Array.from(sequences, (_, i) => (sequences[0] ?? 0) + i))
  })

  it('answers unknown when there is no such stream, and when the time is over', async () => {
    const nobody = await at.broker.journal(99).append(body, { msgId: newId(), timeoutMs: TIMEOUT_MS })
    expect(nobody).to.deep.include({ kind: 'unknown' })
    expect(nobody.kind === 'unknown' && nobody.error).to.contain('no responders')
    // A subscriber that never answers stands for a broker that does not.
    const end = at.broker.subscribe('journal.98', () => {})
    const late = await at.broker.journal(98).append(body, { msgId: newId(), timeoutMs: 1 })
    expect(late).to.deep.equal({ kind: 'unknown', error: 'no answer in time' })
    end()
  })

  it('answers unknown for a message that the server would not take, and goes on', async () => {
    const tooLarge = Buffer.alloc(at.connection.maxPayload + 1)
    expect((await journal.append(tooLarge, { msgId: newId(), timeoutMs: TIMEOUT_MS })).kind).to.equal(
      'unknown',
    )
    expect((await journal.append(body, { msgId: newId(), timeoutMs: TIMEOUT_MS })).kind).to.equal('stored')
  })

  it('says full when max_bytes is reached, evicts nothing, and takes more after a purge', async () => {
    const manager = await at.connection.nats.jetstreamManager()
    const inbox = at.broker.inbox(0)
    const { firstSeq, bytes } = await inbox.state()
    await manager.streams.update('INBOX_0', { max_bytes: bytes + 100_000 })
    const block = Buffer.alloc(30_000)
    const kinds: string[] = []
    for (let i = 0; i < 5; i++)
      kinds.push((await inbox.append(block, { msgId: newId(), timeoutMs: TIMEOUT_MS })).kind)
    expect(kinds).to.deep.equal(['stored', 'stored', 'stored', 'full', 'full'])
    expect((await inbox.state()).firstSeq).to.equal(firstSeq)
    await inbox.purgeBelow((await inbox.state()).lastSeq)
    expect((await inbox.append(block, { msgId: newId(), timeoutMs: TIMEOUT_MS })).kind).to.equal('stored')
  })

  it('throws on a message id that is no header value', () => {
    expect(() => appendHeaders('a\r\nNats-Rollup: all', undefined)).to.throw(RangeError)
    expect(() => appendHeaders('', undefined)).to.throw(RangeError)
  })
})

describe('a PubAck', () => {
  const read = (text: string) => readPubAck(Buffer.from(text))

  it('is read as what it says', () => {
    expect(read('{"stream":"S", "seq":7}')).to.deep.equal({ kind: 'stored', seq: 7, duplicate: false })
    expect(read('{"stream":"S","domain":"d","seq":7,"duplicate": true}')).to.include({ duplicate: true })
    const refused = (code: number, text = '') =>
      read(`{"error":{"code":400,"err_code":${code},"description":"${text}"}}`)
    expect(refused(10071).kind).to.equal('wrong-sequence')
    expect(refused(10164).kind).to.equal('wrong-sequence')
    expect(refused(10158).kind).to.equal('in-process')
    expect(refused(10047).kind).to.equal('full')
    expect(refused(10077, 'maximum bytes exceeded').kind).to.equal('full')
    expect(refused(10077, 'disk error')).to.deep.equal({ kind: 'unknown', error: '10077 disk error' })
    expect(read('').kind).to.equal('unknown')
    expect(read('{"stream":"S","seq":0}').kind).to.equal('unknown')
    expect(read('+OK').kind).to.equal('unknown')
  })
})
