import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { CorruptBytesError } from '../../../internal/shard/journal/bytes.ts'
import { decodeCommit, encodeCommit, encodeRecord } from '../../../internal/shard/journal/codec.ts'
import { type JournalRecord, keptItems, type SealRecord } from '../../../internal/shard/journal/records.ts'
import { BOOT, commitOf, everyRecord, FIRST, groupId, seal, settled, uuid } from '../journal-records.ts'

/** The same value whether bytes came as Buffer or Uint8Array. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes:${Buffer.from(value).toString('hex')}`
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, plain(part)]))
}

const name = { groupId: groupId(1), version: 300 }
const position = { seq: 200, index: 2 }

/** A record of each type, and its bytes. Journals hold such bytes: a change of one needs another version of the commit. */
const VECTORS: { readonly [Type in JournalRecord['type']]: readonly [record: unknown, bytes: string] } = {
  epoch: [{}, '00'],
  release: [{ batches: [{ ...name, deadline: 7 }] }, `01 01 ${'01'.repeat(16)} ac02 07`],
  seal: [
    seal(1, [position, { seq: 199, index: 3 }]),
    `02 ${'01'.repeat(16)} 11111111111141118111111111111111 00 00 01 02
      02 9003 02 01 03 10 ${'01'.repeat(16)} 20 ${'02'.repeat(32)} 01`,
  ],
  unseal: [name, `03 ${'01'.repeat(16)} ac02`],
  attempt: [{ ...name, attempt: 2, nextAt: 9 }, `04 ${'01'.repeat(16)} ac02 02 09`],
  done: [
    settled('done', 1, 300),
    `05 ${'01'.repeat(16)} ac02 00 11111111111141118111111111111111 05 01 01 00 03`,
  ],
  dead: [
    settled('dead', 1, 300),
    `06 ${'01'.repeat(16)} ac02 01 11111111111141118111111111111111 05 01 01 00 03`,
  ],
  drop: [
    { position, itemId: uuid(1), originalItemId: uuid(2) },
    '07 c801 02 22222222222242228222000000000001 22222222222242228222000000000002',
  ],
  discard: [{ batch: name, positions: [] }, `08 01 ${'01'.repeat(16)} ac02 00`],
  keep: [{ items: [{ position, at: 4, item: Buffer.from('ab') }] }, '09 01 9003 02 04 02 6162'],
  horizon: [{ seq: 200 }, '0a c801'],
  seen: [{ upTo: 200, writers: [{ writer: 'a', number: 5 }] }, '0b c801 01 01 61 05'],
}

describe('journal codec', () => {
  for (const [type, [members, bytes]] of Object.entries(VECTORS)) {
    it(`writes \`${type}\` as it always did`, () => {
      const record = { type, ...(members as object) } as JournalRecord
      expect(encodeRecord(record).toString('hex')).to.equal(bytes.replaceAll(/\s/g, ''))
    })
  }

  it('reads back every commit that it wrote', () => {
    const header = fc.record({
      boot: fc.constant(BOOT),
      epoch: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
      at: fc.integer({ min: 0, max: 2 ** 45 }),
      highWater: fc.option(fc.record({ seq: fc.integer({ min: 1, max: 2 ** 52 }), packId: fc.string() }), {
        nil: null,
      }),
    })
    fc.assert(
      fc.property(header, fc.array(everyRecord, { maxLength: 8 }), (head, records) => {
        const data = encodeCommit(head, records.map(encodeRecord))
        expect(plain(decodeCommit(data))).to.deep.equal(plain({ ...head, records }))
      }),
      { numRuns: 2_000 },
    )
  })

  it('refuses every commit that was cut or has an unknown version or record', () => {
    const data = encodeCommit(commitOf([]), [encodeRecord({ type: 'horizon', seq: FIRST })])
    for (let end = 0; end < data.length; end++) {
      if (end === data.length - encodeRecord({ type: 'horizon', seq: FIRST }).length) continue
      expect(() => decodeCommit(data.subarray(0, end)), `cut at ${end}`).to.throw(CorruptBytesError)
    }
    expect(() => decodeCommit(Buffer.concat([Buffer.from([9]), data.subarray(1)]))).to.throw('version 9')
    expect(() => decodeCommit(Buffer.concat([data, Buffer.from([200])]))).to.throw('type 200')
  })

  it('never reads outside of random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
        try {
          decodeCommit(Buffer.concat([Buffer.from([2]), noise]))
        } catch (error) {
          expect(error).to.be.instanceOf(CorruptBytesError)
        }
      }),
      { numRuns: 2_000 },
    )
  })

  it('tells where kept items stand in a commit', () => {
    const items = [5, 6].map((index) => ({
      position: { seq: FIRST, index },
      at: 7,
      item: Buffer.from(`item-${index}`),
    }))
    const data = encodeCommit(commitOf([]), [
      encodeRecord({ type: 'horizon', seq: FIRST }),
      encodeRecord({ type: 'keep', items }),
    ])
    const kept = keptItems(decodeCommit(data))
    expect(kept.map(({ position }) => position.index)).to.deep.equal([5, 6])
    const offsets = kept.map(({ item }) => item.byteOffset - data.byteOffset)
    expect(offsets.map((at) => data.subarray(at, at + 6).toString())).to.deep.equal(['item-5', 'item-6'])
  })

  it('reads a seal that holds nothing of the commit: its batch may stay open for days', () => {
    const data = encodeCommit(commitOf([]), [encodeRecord(seal(1, [{ seq: FIRST, index: 0 }]))])
    const [record] = decodeCommit(data).records
    const { itemsHash, bodySha256 } = record as SealRecord
    expect([itemsHash, bodySha256].map(({ buffer }) => buffer === data.buffer)).to.deep.equal([false, false])
  })
})
