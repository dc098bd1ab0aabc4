import { expect } from 'chai'
import { describe, it } from 'mocha'
import { SeenPacks } from '../../../internal/shard/journal/seen-packs.ts'

/** The name of a pack as its id. */
const pack = (writer: string, number: number) =>
  writer.repeat(12) + Buffer.of(0, 0, number).toString('base64url')
const record = (upTo: number, writer: string, number: number) =>
  ({ type: 'seen', upTo, writers: [{ writer: writer.repeat(12), number }] }) as const

describe('seen packs', () => {
  it('are all up to the last number of their writer', () => {
    const seen = new SeenPacks()
    seen.admits(1, pack('a', 3))
    expect([2, 3, 4].map((number) => seen.admits(2, pack('a', number)))).to.deep.equal([false, false, true])
    expect(seen.admits(3, pack('b', 0))).to.equal(true)
  })

  it('stay seen when an earlier one is noted again', () => {
    const seen = new SeenPacks()
    for (const number of [3, 1]) seen.admits(number, pack('a', number))
    expect(seen.admits(4, pack('a', 3))).to.equal(false)
  })

  it('are judged by the journal as far as it covers them', () => {
    const seen = new SeenPacks()
    expect([record(5, 'a', 3), record(5, 'a', 9)].map((each) => seen.apply(each))).to.deep.equal([
      true,
      false,
    ])
    expect([5, 6].map((seq) => seen.admits(seq, pack('a', 3)))).to.deep.equal([true, false])
  })

  it('are forgotten past the bound, those of the writer first that wrote longest ago', () => {
    const seen = new SeenPacks(2)
    for (const writer of ['a', 'b', 'a', 'c']) seen.admits(1, pack(writer, 1))
    expect(seen.news(2)).to.deep.equal({
      type: 'seen',
      upTo: 1,
      writers: ['a', 'c'].map((writer) => ({ writer: writer.repeat(12), number: 1 })),
    })
    expect(seen.news(3)).to.equal(null)
  })

  it('are copied apart', () => {
    const seen = new SeenPacks()
    seen.apply(record(7, 'a', 1))
    const copy = seen.copy()
    copy.admits(8, pack('a', 9))
    expect([seen.record(), copy.record()]).to.deep.equal([record(7, 'a', 1), record(7, 'a', 9)])
    expect([seen.news(9), copy.news(9)]).to.deep.equal([null, record(8, 'a', 9)])
  })
})
