import { expect } from 'chai'
import { after, before, beforeEach, describe, it } from 'mocha'
import type { Connection } from '../../internal/nats/connection.ts'
import { StreamArchive } from '../../internal/nats/log/archive.ts'
import { archiveName } from '../../internal/nats/names.ts'
import type { Archive } from '../../internal/shard/broker.ts'
import { natsAccount } from '../support/servers.ts'
import { brokerAt, type TestBroker } from './support.ts'

const SHARDS = 8
const TIMEOUT_MS = 30_000
/** More than the server lists at once. */
const MANY = 100_001
let serial = 0

describe('an archive', function () {
  this.timeout(60_000)
  let at: TestBroker
  let archive: Archive
  let shard = 0

  before(async () => {
    at = await brokerAt((await natsAccount()).url, SHARDS)
  })
  beforeEach(() => {
    archive = at.broker.archive(shard++)
  })
  after(() => at.close())

  async function append(subject: string, body = subject, msgId = `m-${serial++}`): Promise<number> {
    const answer = await archive.append(Buffer.from(body), { subject, msgId, timeoutMs: TIMEOUT_MS })
    if (answer.kind !== 'stored') throw new Error(JSON.stringify(answer))
    return answer.seq
  }
  const fill = async (...subjects: string[]) => {
    for (const subject of subjects) await append(subject)
  }
  const listed = async (filter: string) => (await archive.list(filter)).subjects.sort()
  const bodyOf = async (subject: string) => (await archive.lastOf(subject))?.data.toString()

  it('stores under the subject that is named, and an id once', async () => {
    const seq = await append('snapshot.7.ab.0', 'part', 'once')
    expect(await append('snapshot.7.ab.0', 'part', 'once')).to.equal(seq)
    const message = await archive.lastOf('snapshot.7.ab.0')
    expect(message).to.deep.include({ seq, msgId: 'once' })
    const manager = await at.connection.nats.jetstreamManager()
    const stored = await manager.streams.getMessage(`ARCHIVE_${shard - 1}`, { seq })
    expect(stored.subject).to.equal(`archive.${shard - 1}.snapshot.7.ab.0`)
    expect(await archive.state()).to.include({ firstSeq: seq, lastSeq: seq, messages: 1 })
  })

  it('finds the last message under a subject, and no other', async () => {
    await append('snapshot.7.ab.1', 'first')
    await append('snapshot.7.ab.1', 'second')
    await append('snapshot.7.ab.10', 'another')
    expect(await bodyOf('snapshot.7.ab.1')).to.equal('second')
    expect(await archive.lastOf('snapshot.7.ab')).to.equal(undefined)
    expect(await archive.lastOf('probe')).to.equal(undefined)
  })

  it('lists subjects, with a last sequence that counts the others too', async () => {
    const { lastSeq: before } = await archive.list('>')
    await fill('snapshot.7.ab.0', 'snapshot.7.ab.1', 'snapshot.8.cd.0', 'snapshot.7.ab.1')
    const probe = await append('probe', '')
    const subjects = ['snapshot.7.ab.0', 'snapshot.7.ab.1', 'snapshot.8.cd.0']
    const { lastSeq, subjects: found } = await archive.list('snapshot.>')
    expect({ lastSeq, subjects: found.sort() }).to.deep.equal({ lastSeq: probe, subjects })
    expect(lastSeq).to.equal(before + 5)
    expect(await listed('snapshot.7.ab.*')).to.deep.equal(subjects.slice(0, 2))
    expect(await archive.list('other.>')).to.deep.equal({ lastSeq: probe, subjects: [] })
  })

  it('removes what is under a subject, and its sequences go on', async () => {
    await fill('snapshot.7.ab.0', 'snapshot.7.ab.1', 'probe', 'snapshot.8.cd.0')
    const last = await append('snapshot.8.cd.1')
    await archive.remove('snapshot.7.>')
    await archive.remove('probe')
    await archive.remove('probe')
    expect(await listed('>')).to.deep.equal(['snapshot.8.cd.0', 'snapshot.8.cd.1'])
    expect(await archive.state()).to.include({ firstSeq: last - 1, lastSeq: last, messages: 2 })
    await archive.remove('snapshot.>')
    expect(await archive.state()).to.include({ firstSeq: last + 1, lastSeq: last, messages: 0, bytes: 0 })
    expect(await append('probe')).to.equal(last + 1)
  })

  it('says full when max_bytes is reached, and takes more after a removal', async () => {
    const manager = await at.connection.nats.jetstreamManager()
    await manager.streams.update(`ARCHIVE_${shard - 1}`, { max_bytes: 100_000 })
    const part = { data: Buffer.alloc(60_000), timeoutMs: TIMEOUT_MS }
    const store = (subject: string) =>
      archive.append(part.data, { subject, msgId: subject, timeoutMs: TIMEOUT_MS })
    expect((await store('snapshot.7.ab.0')).kind).to.equal('stored')
    expect((await store('snapshot.8.cd.0')).kind).to.equal('full')
    await archive.remove('snapshot.7.>')
    expect((await store('snapshot.8.cd.0')).kind).to.equal('stored')
  })

  it('lists more subjects than the server does at once', async () => {
    const names = Array.from({ length: MANY }, (_, n) => `snapshot.${n}`)
    await Promise.all(names.map((name) => append(name, '')))
    expect(await listed('snapshot.>')).to.deep.equal(names.sort())
  })
})

describe('a list of several answers', () => {
  /** What lists from a server that answers with these, one after the other. */
  function listing(...answers: object[]): Promise<unknown> {
    const request = async () => ({ data: Buffer.from(JSON.stringify(answers.shift())) })
    const connection = { nats: { request } } as unknown as Connection
    const archive = new StreamArchive({ connection, appender: {} as never, name: archiveName(0) })
    return archive.list('>').catch(({ message }: Error) => message)
  }
  const answer = (last_seq: number, total: number, ...subjects: string[]) => {
    const counts = Object.fromEntries(subjects.map((subject) => [`archive.0.${subject}`, 1]))
    return { total, state: { last_seq, subjects: counts }, config: {} }
  }
  const CHANGED = 'stream ARCHIVE_0: it changed while it was listed'

  it('is one list while neither an append nor a removal came between', async () => {
    const list = await listing(answer(9, 3, 'a', 'b'), answer(9, 3, 'c'))
    expect(list).to.deep.equal({ lastSeq: 9, subjects: ['a', 'b', 'c'] })
  })

  it('is refused when it changed, or ends too early', async () => {
    expect(await listing(answer(9, 3, 'a', 'b'), answer(10, 3, 'c'))).to.equal(CHANGED)
    expect(await listing(answer(9, 3, 'a', 'b'), answer(9, 2))).to.equal(CHANGED)
    expect(await listing(answer(9, 3, 'a', 'b'), answer(9, 3))).to.equal(CHANGED)
  })

  it('is refused from another server than the leader', async () => {
    const cluster = { leader: '', replicas: [{ name: 'n2' }] }
    expect(await listing({ ...answer(9, 0), cluster })).to.match(/ARCHIVE_0: a server answered that is not/)
  })
})
