import { expect } from 'chai'
import { describe, it } from 'mocha'

import {
  decodeShareReport,
  encodeShareReport,
  MOST_HELD,
  notable,
} from '../../internal/domain/share-report.ts'

const UID = '0d5f2c9e-6f0a-4a53-9f0e-0d4b7a0f1c11'

describe('a report of shares', () => {
  it('comes back as it was sent', () => {
    const report = {
      shard: 3,
      epoch: 1_790_000_000_000_123,
      limit: 4_194_304,
      held: [
        { bufferUid: UID, bytes: 5_000_000 },
        { bufferUid: UID.replace('0d', '1d'), bytes: 50_000 },
      ],
    }
    expect(decodeShareReport(encodeShareReport(report))).to.deep.equal(report)
    const empty = { ...report, held: [] }
    expect(decodeShareReport(encodeShareReport(empty))).to.deep.equal(empty)
  })

  it('holds what is a hundredth of the limit and more, the largest first', () => {
    const held = [10, 9, 1_200, 11, 0].map((bytes) => ({ bufferUid: `b${bytes}`, bytes }))
    expect(notable(held, 1_000).map(({ bytes }) => bytes)).to.deep.equal([1_200, 11, 10])
  })

  it('stays below a message that any broker takes, and leaves the smallest out', () => {
    const held = Array.from({ length: 3 * MOST_HELD }, (_, n) => ({ bufferUid: UID, bytes: 2 ** 40 + n }))
    const chosen = notable(held, 1)
    expect(chosen).to.have.length(MOST_HELD)
    expect(chosen.at(-1)?.bytes).to.equal(2 ** 40 + 2 * MOST_HELD)
    const report = { shard: 1_023, epoch: 2 ** 52, limit: 2 ** 50, held: chosen }
    expect(encodeShareReport(report).length).to.be.below(64 * 1024)
  })

  const whole = { shard: 0, epoch: 1, limit: 10, held: [[UID, 1]] }
  const broken: Record<string, unknown> = {
    'no JSON': 'nothing',
    null: null,
    'an array': [],
    'no limit': { ...whole, limit: undefined },
    'a negative limit': { ...whole, limit: -1 },
    'a shard that is text': { ...whole, shard: '0' },
    'half an epoch': { ...whole, epoch: 1.5 },
    'held that is no list': { ...whole, held: {} },
    'a holding that is no pair': { ...whole, held: [UID] },
    'a holding without bytes': { ...whole, held: [[UID]] },
    'a holding of nobody': { ...whole, held: [[null, 1]] },
  }
  for (const [what, value] of Object.entries(broken)) {
    it(`is not read from ${what}`, () => {
      const text = value === 'nothing' ? '{"shard":' : JSON.stringify(value)
      expect(decodeShareReport(Buffer.from(text))).to.equal(undefined)
    })
  }

  it('is read when it is whole', () => {
    expect(decodeShareReport(Buffer.from(JSON.stringify(whole)))?.held).to.deep.equal([
      { bufferUid: UID, bytes: 1 },
    ])
  })
})
