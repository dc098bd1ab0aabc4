import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  type Answer,
  type Ask,
  decodeAnswer,
  decodeAsk,
  decodeVerdict,
  encodeAnswer,
  encodeAsk,
  encodeVerdict,
  type Verdict,
} from '../../internal/domain/verdict.ts'

describe('verdict messages', () => {
  it('come back as they were sent', () => {
    const verdict: Verdict = { packId: 'abc', duplicates: [{ index: 3, of: 'item' }] }
    expect(decodeVerdict(encodeVerdict(verdict))).to.deep.equal(verdict)
    const asks: Ask[] = [
      { kind: 'position', id: 1, seq: 1_790_000_000_000_000, items: [{ index: 0, itemId: 'a' }] },
      { kind: 'original', id: 2, groupToken: 'g', messageId: 'm"\ud800' },
    ]
    for (const ask of asks) expect(decodeAsk(encodeAsk(ask))).to.deep.equal(ask)
    const answers: Answer[] = [
      {
        kind: 'position',
        id: 1,
        fates: [{ kind: 'new' }, { kind: 'duplicate', of: 'x' }, { kind: 'unknown' }],
      },
      { kind: 'original', id: 2, itemId: null },
      { kind: 'original', id: 3, itemId: 'x' },
    ]
    for (const answer of answers) expect(decodeAnswer(encodeAnswer(answer))).to.deep.equal(answer)
  })

  it('are refused when they are something else', () => {
    const foreign = fc.oneof(
      fc.uint8Array(),
      fc.json().map((text) => Buffer.from(text)),
      fc
        .record({
          kind: fc.constantFrom('position', 'duplicate', 'original'),
          id: fc.anything(),
          items: fc.array(fc.anything()),
        })
        .map((value) => Buffer.from(JSON.stringify(value))),
    )
    fc.assert(
      fc.property(foreign, (bytes) => {
        expect(decodeVerdict(bytes)).to.equal(undefined)
        expect(decodeAsk(bytes)).to.equal(undefined)
        expect(decodeAnswer(bytes)).to.equal(undefined)
      }),
    )
    expect(decodeVerdict(Buffer.from('{"pack":"p","duplicates":[[-1,"x"]]}'))).to.equal(undefined)
    expect(decodeAnswer(Buffer.from('{"kind":"position","id":1,"fates":["new","odd"]}'))).to.equal(undefined)
  })
})
