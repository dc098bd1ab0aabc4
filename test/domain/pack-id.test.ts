import { expect } from 'chai'
import { describe, it } from 'mocha'
import { PACK_ID_BYTES, PackIds, packNameOf } from '../../internal/domain/pack-id.ts'

/** Bytes that differ with each call. */
function drawing(): (size: number) => Uint8Array {
  let drawn = 0
  return (size) => Buffer.alloc(size, ++drawn)
}

function nameOf(id: Buffer) {
  return packNameOf(id.toString('base64url'))
}

describe('ids of packs', () => {
  it('name one writer, and number its packs from 0', () => {
    const ids = new PackIds(drawing())
    const names = Array.from({ length: 300 }, () => nameOf(ids.next()))
    expect(names.map(({ number }) => number)).to.deep.equal([...names.keys()])
    expect(new Set(names.map(({ writer }) => writer)).size).to.equal(1)
  })

  it('name another writer for each process', () => {
    const bytes = drawing()
    const [one, other] = [new PackIds(bytes).next(), new PackIds(bytes).next()]
    expect(nameOf(one).writer).not.to.equal(nameOf(other).writer)
    expect(one).to.have.length(PACK_ID_BYTES)
  })

  it('begin another writer when the numbers of one are used up', () => {
    const ids = new PackIds(drawing())
    const first = nameOf(ids.next())
    for (let number = 1; number < 2 ** 24 - 1; number++) ids.next()
    const [last, next] = [nameOf(ids.next()), nameOf(ids.next())]
    expect(last).to.deep.equal({ writer: first.writer, number: 2 ** 24 - 1 })
    expect(next.number).to.equal(0)
    expect(next.writer).not.to.equal(first.writer)
  })
})
