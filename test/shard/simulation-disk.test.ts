/** What a power cut of all simulated servers leaves of a log and of an archive. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { seededFractions } from '../support/seeded.ts'
import { ArchiveStream } from './simulation/archive.ts'
import { Stream } from './simulation/streams.ts'

const FIRST = 1
const OPTIONS = { windowMs: 1_000, firstSeq: FIRST, syncsLater: true }

/** The sequences that are left, and the last one, of many power cuts of the same log. */
function cuts(make: () => Stream): { left: number[]; lastSeq: number }[] {
  return Array.from({ length: 200 }, (_, seed) => {
    const log = make()
    log.cutPower(seededFractions(seed))
    return { left: log.messages.map(({ seq }) => seq), lastSeq: log.lastSeq }
  })
}

function append(log: Stream, count: number): void {
  for (let each = 0; each < count; each++) log.append(0, Buffer.from('x'), `id-${log.lastSeq + 1}`)
}

describe('the simulated disk of a log', () => {
  it('loses any suffix of what came after the last sync, and nothing before', () => {
    const ends = cuts(() => {
      const log = new Stream(OPTIONS)
      append(log, 4)
      log.sync()
      append(log, 3)
      return log
    }).map(({ left, lastSeq }) => {
      expect(left).to.deep.equal(Array.from({ length: lastSeq }, (_, at) => FIRST + at))
      return lastSeq
    })
    expect([...new Set(ends)].sort()).to.deep.equal([4, 5, 6, 7])
  })

  it('may bring back the last of what was purged since, without a gap', () => {
    const begins = cuts(() => {
      const log = new Stream(OPTIONS)
      append(log, 6)
      log.sync()
      log.purgeBelow(3)
      log.purgeBelow(5)
      return log
    }).map(({ left }) => {
      expect(left.at(-1)).to.equal(6)
      expect(left).to.deep.equal(left.map((_, at) => left[0]! + at))
      return left[0]!
    })
    expect([...new Set(begins)].sort()).to.deep.equal([1, 2, 3, 4, 5])
  })

  it('does not know the id of what it lost, and gives its sequence again', () => {
    const log = new Stream(OPTIONS)
    append(log, 1)
    log.cutPower(() => 0)
    expect(log.append(1, Buffer.from('y'), `id-${FIRST}`)).to.deep.equal({
      kind: 'stored',
      seq: FIRST,
      duplicate: false,
    })
    expect(log.state()).to.include({ bytes: 1, messages: 1 })
  })

  it('loses nothing where each message is synced', () => {
    const log = new Stream({ ...OPTIONS, syncsLater: false })
    append(log, 5)
    log.purgeBelow(3)
    log.cutPower(() => 0)
    expect(log.state()).to.include({ firstSeq: 3, lastSeq: 5 })
  })
})

describe('the simulated archive', () => {
  const put = (archive: ArchiveStream, subject: string, text = subject) =>
    archive.append(0, Buffer.from(text), `${archive.lastSeq}`, subject)

  it('finds and removes messages by their subjects', () => {
    const archive = new ArchiveStream(OPTIONS)
    for (const subject of ['probe', 'snapshot.1.a.0', 'snapshot.1.a.1', 'snapshot.2.b.0', 'probe'])
      put(archive, subject)
    expect(archive.list('snapshot.1.>').subjects).to.deep.equal(['snapshot.1.a.0', 'snapshot.1.a.1'])
    expect(archive.list('snapshot.*.*.0').subjects).to.deep.equal(['snapshot.1.a.0', 'snapshot.2.b.0'])
    expect(archive.lastOf('probe')?.seq).to.equal(5)
    archive.remove('snapshot.1.>')
    archive.remove('probe')
    expect(archive.list('>')).to.deep.equal({ lastSeq: 5, subjects: ['snapshot.2.b.0'] })
    expect(archive.lastOf('probe')).to.equal(undefined)
  })

  it('takes nothing that does not fit', () => {
    const archive = new ArchiveStream({ ...OPTIONS, maxBytes: 4 })
    expect(put(archive, 'one', 'xxx').kind).to.equal('stored')
    expect(put(archive, 'two', 'xx').kind).to.equal('full')
    archive.remove('one')
    expect(put(archive, 'two', 'xx').kind).to.equal('stored')
  })

  it('may bring back the last of what was removed since the last sync', () => {
    const seen = new Set<string>()
    for (let seed = 0; seed < 200; seed++) {
      const archive = new ArchiveStream(OPTIONS)
      for (const subject of ['a.0', 'b.0', 'a.1']) put(archive, subject)
      archive.sync()
      archive.remove('b.>')
      archive.remove('a.>')
      archive.cutPower(seededFractions(seed))
      seen.add(archive.list('>').subjects.join())
    }
    expect([...seen].sort()).to.deep.equal(['', 'a.0,a.1', 'a.0,a.1,b.0', 'a.1'])
  })
})
