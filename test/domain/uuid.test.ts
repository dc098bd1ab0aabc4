import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { readUuid, writeUuid } from '../../internal/domain/uuid.ts'

describe('UUIDs as 16 bytes', () => {
  it('reads in lower case what was written in either', () => {
    const bytes = Buffer.alloc(20, 0xff)
    for (let i = 0; i < 100; i++) {
      const uuid = randomUUID()
      writeUuid(bytes, 3, i % 2 === 0 ? uuid : uuid.toUpperCase())
      expect(bytes.toString('hex', 3, 19)).to.equal(uuid.replaceAll('-', ''))
      expect(readUuid(bytes, 3)).to.equal(uuid)
      expect([bytes[2], bytes[19]]).to.deep.equal([0xff, 0xff])
    }
  })

  it('keeps a text when the next one is read', () => {
    const first = readUuid(Buffer.alloc(16, 0x0f), 0)
    const second = readUuid(Buffer.alloc(16, 0xf0), 0)
    expect(first).to.equal('0f0f0f0f-0f0f-0f0f-0f0f-0f0f0f0f0f0f')
    expect(second).to.equal('f0f0f0f0-f0f0-f0f0-f0f0-f0f0f0f0f0f0')
  })

  it('refuses what is no UUID', () => {
    const good = '01234567-89ab-cdef-0123-456789abcdef'
    for (const bad of [
      '',
      good.slice(1),
      `${good}0`,
      good.replaceAll('-', '0'),
      good.replace('a', 'g'),
      good.replace('a', 'é'),
    ]) {
      expect(() => writeUuid(Buffer.alloc(16), 0, bad)).to.throw(RangeError)
    }
  })
})
