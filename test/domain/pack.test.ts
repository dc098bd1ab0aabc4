import { randomBytes, randomUUID } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import {
  CorruptPackError,
  decodePack,
  encodePack,
  type ItemView,
  itemSizeBound,
  type PackItem,
  packOverhead,
  readItem,
  readPackHeader,
} from '../../internal/domain/pack.ts'

function item(changes: Partial<PackItem> = {}): PackItem {
  return {
    itemId: randomUUID(),
    bufferUid: randomUUID(),
    groupToken: randomBytes(16).toString('base64url'),
    groupKey: 'order-1',
    messageId: 'm-1',
    explicit: true,
    credits: 3,
    receivedAt: 1_790_000_000_123,
    payload: Buffer.from('{"n": 1e400, "n":2}'),
    ...changes,
  }
}

function plain(view: ItemView, frame: Buffer): PackItem {
  const { itemId, bufferUid, groupToken, groupKey, messageId, explicit, credits, receivedAt } = view
  const payload = Buffer.from(frame.subarray(view.payloadOffset, view.payloadOffset + view.payloadBytes))
  return { itemId, bufferUid, groupToken, groupKey, messageId, explicit, credits, receivedAt, payload }
}

function decoded(frame: Buffer): PackItem[] {
  const items: PackItem[] = []
  decodePack(frame, (view) => items.push(plain(view, frame)))
  return items
}

const items = fc.array(
  fc.record({
    itemId: fc.uuid(),
    bufferUid: fc.uuid(),
    groupToken: fc
      .uint8Array({ minLength: 16, maxLength: 16 })
      .map((b) => Buffer.from(b).toString('base64url')),
    groupKey: fc.string({ unit: 'binary', maxLength: 40 }),
    messageId: fc.string({ unit: 'binary', maxLength: 40 }),
    explicit: fc.boolean(),
    credits: fc.nat(2 ** 32 - 1),
    receivedAt: fc.nat({ max: 2 ** 48 - 1 }),
    payload: fc.uint8Array({ maxLength: 60 }).map((b) => Buffer.from(b)),
  }),
  { maxLength: 6 },
)

describe('pack', () => {
  it('gives back what was put in, whatever it is', () => {
    fc.assert(
      fc.property(items, fc.option(fc.string({ minLength: 1 })), (list, reply) => {
        const id = randomBytes(12)
        const frame = encodePack(id, reply, list)
        const header = readPackHeader(frame)
        expect(header.packId).to.equal(id.toString('base64url'))
        expect(header.replySubject).to.equal(reply)
        expect(decoded(frame)).to.deep.equal(list)
      }),
    )
  })

  it('keeps lone surrogates apart from the replacement character', () => {
    const frame = encodePack(randomBytes(12), null, [item({ groupKey: '\ud800', messageId: '\udfff' })])
    expect(decoded(frame)[0]).to.include({ groupKey: '\ud800', messageId: '\udfff' })
  })

  it('holds the finished element with the bytes of the sender', () => {
    const frame = encodePack(randomBytes(12), null, [item({ messageId: 'a"b' })])
    const view = readItem(frame, readPackHeader(frame).firstItemOffset)
    expect(frame.toString('utf8', view.elementOffset, view.elementOffset + view.elementLength)).to.equal(
      '{"messageId":"a\\"b","receivedAt":1790000000123,"payload":{"n": 1e400, "n":2}}',
    )
  })

  it('has items that can be copied verbatim and read elsewhere', () => {
    const list = [item(), item({ messageId: 'second' })]
    const frame = encodePack(randomBytes(12), 'reply.here', list)
    let slice = Buffer.alloc(0)
    decodePack(frame, (view, index) => {
      if (index === 1) slice = Buffer.concat([Buffer.alloc(7), frame.subarray(view.offset, view.end)])
    })
    expect(plain(readItem(slice, 7), slice)).to.deep.equal(list[1])
  })

  it('reads a plain Uint8Array that begins inside its memory', () => {
    const frame = encodePack(randomBytes(12), null, [item()])
    const memory = new Uint8Array(frame.length + 5)
    memory.set(frame, 5)
    expect(
      readItem(memory.subarray(5), readPackHeader(memory.subarray(5)).firstItemOffset).messageId,
    ).to.equal('m-1')
  })

  it('bounds the size of an item from above', () => {
    fc.assert(
      fc.property(items, (list) => {
        const bound = list.reduce((sum, one) => sum + itemSizeBound(one), packOverhead('r'))
        expect(encodePack(randomBytes(12), 'r', list).length).to.be.at.most(bound)
      }),
    )
  })

  it('refuses fields that do not fit', () => {
    const encode = (changes: Partial<PackItem>) => () => encodePack(randomBytes(12), null, [item(changes)])
    expect(encode({ itemId: 'x' })).to.throw(RangeError, 'UUID')
    expect(encode({ bufferUid: 'g0000000-0000-0000-0000-000000000000' })).to.throw(RangeError, 'UUID')
    expect(encode({ groupToken: 'short' })).to.throw(RangeError, 'groupToken')
    expect(encode({ receivedAt: 1.5 })).to.throw(RangeError, 'receivedAt')
    expect(encode({ groupKey: 'k'.repeat(70_000) })).to.throw(RangeError, 'groupKey')
    expect(() => encodePack(randomBytes(11), null, [])).to.throw(RangeError, 'pack id')
  })
})

describe('a corrupt pack', () => {
  const whole = encodePack(randomBytes(12), 'reply', [item(), item({ explicit: false })])

  it('is refused at every truncation and with bytes behind it', () => {
    for (let length = 0; length < whole.length; length++) {
      expect(() => decodePack(whole.subarray(0, length), () => {}), `${length} bytes`).to.throw(
        CorruptPackError,
      )
    }
    expect(() => decodePack(Buffer.concat([whole, Buffer.alloc(1)]), () => {})).to.throw(
      CorruptPackError,
      'follow',
    )
  })

  it('is refused for another magic, another version and unknown essential flags', () => {
    const changed = (offset: number, value: number) => {
      const copy = Buffer.from(whole)
      copy[offset] = value
      return () => decodePack(copy, () => {})
    }
    expect(changed(0, 0)).to.throw(CorruptPackError, 'not a pack')
    expect(changed(1, 2)).to.throw(CorruptPackError, 'version 2')
    expect(changed(readPackHeader(whole).firstItemOffset + 4, 0x10)).to.throw(CorruptPackError, 'flags')
    expect(changed(readPackHeader(whole).firstItemOffset + 4, 0x0f)).not.to.throw()
  })

  it('never ends in anything but CorruptPackError or items inside the frame', () => {
    const edits = fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(edits, (list) => {
        const copy = Buffer.from(whole)
        for (const [offset, value] of list) copy[offset] = value
        try {
          decodePack(copy, (view) => {
            expect(view.end).to.be.at.most(copy.length)
            expect(plain(view, copy).payload.length).to.equal(view.payloadBytes)
          })
        } catch (error) {
          expect(error).to.be.instanceOf(CorruptPackError)
        }
      }),
      { numRuns: 2000 },
    )
  })
})
