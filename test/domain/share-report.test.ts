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
      buffers: {
        limit: 4_194_304,
        held: [
          { id: UID, bytes: 5_000_000 },
          { id: UID.replace('0d', '1d'), bytes: 50_000 },
        ],
      },
      customers: { limit: 8_388_608, held: [{ id: 'acme "&" co', bytes: 5_050_000 }] },
    }
    expect(decodeShareReport(encodeShareReport(report))).to.deep.equal(report)
    const empty = { ...report, buffers: { limit: 1, held: [] }, customers: { limit: 0, held: [] } }
    expect(decodeShareReport(encodeShareReport(empty))).to.deep.equal(empty)
  })

  it('holds what is a hundredth of the limit and more, the largest first', () => {
    const held = [10, 9, 1_200, 11, 0].map((bytes) => ({ id: `b${bytes}`, bytes }))
    const { limit, held: chosen } = notable(held, 1_000)
    expect(limit).to.equal(1_000)
    expect(chosen.map(({ bytes }) => bytes)).to.deep.equal([1_200, 11, 10])
  })

  it('stays below a message that any broker takes, and leaves the smallest out', () => {
    const of = (id: string) => Array.from({ length: 3 * MOST_HELD }, (_, n) => ({ id, bytes: 2 ** 40 + n }))
    const [buffers, customers] = [notable(of(UID), 1), notable(of('c'.repeat(128)), 1)]
    expect(buffers.held).to.have.length(MOST_HELD)
    expect(buffers.held.at(-1)?.bytes).to.equal(2 ** 40 + 2 * MOST_HELD)
    const report = { shard: 1_023, epoch: 2 ** 52, buffers, customers }
    expect(encodeShareReport(report).length).to.be.below(256 * 1024)
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
    'customers without a limit': { ...whole, customers: { held: [] } },
    'customers that are no object': { ...whole, customers: 'acme' },
    'a customer that holds text': { ...whole, customers: { limit: 1, held: [['acme', '1']] } },
  }
  for (const [what, value] of Object.entries(broken)) {
    it(`is not read from ${what}`, () => {
      const text = value === 'nothing' ? '{"shard":' : JSON.stringify(value)
      expect(decodeShareReport(Buffer.from(text))).to.equal(undefined)
    })
  }

  it('is read from an owner of an older version, which names no customers', () => {
    expect(decodeShareReport(Buffer.from(JSON.stringify(whole)))).to.deep.equal({
      shard: 0,
      epoch: 1,
      buffers: { limit: 10, held: [{ id: UID, bytes: 1 }] },
      customers: { limit: 0, held: [] },
    })
  })

  it('has the buffers where an ingress of an older version reads them', () => {
    const report = {
      shard: 0,
      epoch: 1,
      buffers: { limit: 10, held: [{ id: UID, bytes: 1 }] },
      customers: { limit: 20, held: [] },
    }
    expect(JSON.parse(encodeShareReport(report).toString())).to.deep.include(whole)
  })
})
