import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { isDeeper, misreadsNames, readJson } from '../../internal/domain/json.ts'

const bytes = (text: string) => Buffer.from(text)
const nested = (depth: number) => bytes('['.repeat(depth) + ']'.repeat(depth))

/** Depth by recursion over the parsed value: what the scan must agree with. */
function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

describe('reading JSON', () => {
  for (const text of ['{}', '[]', 'null', '0', '"x"', ' {"a": [1e400]} \n', '{"a":1,"a":2}', '"\\ud800"']) {
    it(`takes ${text}`, () => {
      expect(readJson(bytes(text))).to.deep.equal({ ok: true, value: JSON.parse(text) })
    })
  }

  const bad = [
    ...['', ' ', '{', '{]', '[1,]', "{'a':1}", 'undefined', 'NaN', '01', '"\n"', '{}{}', '\ufeff{}'].map(
      bytes,
    ),
    Buffer.from([0x22, 0xff, 0x22]),
    Buffer.from([0x22, 0xc0, 0x80, 0x22]),
    Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
    Buffer.from([0x22, 0xe2, 0x82]),
    Buffer.from('{}', 'utf16le'),
  ]
  for (const body of bad) {
    it(`refuses ${JSON.stringify(body.toString('latin1'))}`, () => {
      expect(readJson(body)).to.deep.equal({ ok: false, reason: 'syntax' })
    })
  }

  it('takes 64 levels and refuses 65', () => {
    const objects = (depth: number) => bytes(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`)
    for (const body of [nested, objects]) {
      expect(readJson(body(64)).ok).to.equal(true)
      expect(readJson(body(65))).to.deep.equal({ ok: false, reason: 'depth' })
    }
  })

  it('refuses a million levels', () => {
    expect(readJson(nested(1_000_000))).to.deep.equal({ ok: false, reason: 'depth' })
    expect(readJson(bytes('['.repeat(1_000_000)))).to.deep.equal({ ok: false, reason: 'syntax' })
  })

  it('counts a million siblings as one level', () => {
    expect(readJson(bytes(`[${'[],'.repeat(1_000_000)}[]]`)).ok).to.equal(true)
  })

  it('is not fooled by brackets and quotes in strings', () => {
    const noise = '[{'.repeat(100)
    for (const text of [noise, `\\"${noise}`, `\\\\\\"${noise}`, `${noise}\\\\`]) {
      expect(readJson(bytes(`{"a":"${text}","${text}":1}`)).ok, text.slice(0, 6)).to.equal(true)
    }
    expect(isDeeper(bytes(`["]]]]",[["]]"]]]`), 2)).to.equal(true)
  })

  it('knows the depth of any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 8, stringUnit: 'binary' }), fc.nat(2), (value, indent) => {
        const text = bytes(JSON.stringify(value, null, indent))
        const depth = depthOf(value)
        expect(isDeeper(text, depth)).to.equal(false)
        if (depth > 0) expect(isDeeper(text, depth - 1)).to.equal(true)
      }),
    )
  })

  it('is read by a Node that takes no name for another one', () => {
    expect(misreadsNames()).to.equal(false)
  })
})
