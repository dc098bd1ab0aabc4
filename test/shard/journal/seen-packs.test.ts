import { expect } from 'chai'
import { describe, it } from 'mocha'
import { SeenPacks } from '../../../internal/shard/journal/seen-packs.ts'

const pack = (writer: string, number: number) => ({ writer, number })

describe('seen packs', () => {
  it('are all up to the last number of their writer', () => {
    const seen = new SeenPacks()
    seen.note(pack('a', 3))
    expect([2, 3, 4].map((number) => seen.has(pack('a', number)))).to.deep.equal([true, true, false])
    expect(seen.has(pack('b', 0))).to.equal(false)
  })

  it('stay seen when an earlier one is noted again', () => {
    const seen = new SeenPacks()
    seen.note(pack('a', 3))
    seen.note(pack('a', 1))
    expect(seen.has(pack('a', 3))).to.equal(true)
  })

  it('are forgotten past the bound, those of the writer first that wrote longest ago', () => {
    const seen = new SeenPacks(0, [], 2)
    for (const writer of ['a', 'b', 'a', 'c']) seen.note(pack(writer, 1))
    expect(seen.size).to.equal(2)
    expect(['a', 'b', 'c'].map((writer) => seen.has(pack(writer, 1)))).to.deep.equal([true, false, true])
  })

  it('are copied apart', () => {
    const seen = new SeenPacks(7, [['a', 1]])
    const copy = seen.copy()
    copy.note(pack('a', 9))
    expect([seen.get('a'), copy.get('a'), copy.upTo]).to.deep.equal([1, 9, 7])
  })
})
