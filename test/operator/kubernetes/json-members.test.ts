import { expect } from 'chai'
import { describe, it } from 'mocha'
import { type Keeps, withMembers } from '../../../operator/kubernetes/json-members.ts'
import { seededFractions } from '../../support/seeded.ts'

async function* pieces(bytes: Buffer, size: number) {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

async function filtered(text: string, keeps: Keeps, size = text.length): Promise<string> {
  const kept: Uint8Array[] = []
  for await (const chunk of withMembers(pieces(Buffer.from(text), size), keeps)) kept.push(chunk)
  return Buffer.concat(kept).toString()
}

const all: Keeps = () => true

describe('JSON without some members', () => {
  it('is the same text where all stay', async () => {
    const text =
      '{"a":"1,\\"{","\\"b":["\\u00e9",{},[],"",1e3,{"é":true,"c":null}],"":"\\\\"}\n{"a":1}\n[1,[2]]'
    for (let size = 1; size <= text.length; size++) expect(await filtered(text, all, size)).to.equal(text)
  })

  it('lacks them wherever they stand, and with whatever they hold', async () => {
    const keeps: Keeps = (_parent, name) => name !== 'x'
    const cases: [string, string][] = [
      ['{"x":1}', '{}'],
      ['{"x":{"a":["}",{"b":"\\"]"}]},"a":1}', '{"a":1}'],
      ['{"a":1,"x":"}\\\\","b":2}', '{"a":1,"b":2}'],
      ['{"a":1,"x":[[],[{}]]}', '{"a":1}'],
      ['[{"x":null},{"a":[{"x":1,"b":2}]}]', '[{},{"a":[{"b":2}]}]'],
      ['{"\\u0078":1,"a":"x"}', '{"a":"x"}'],
    ]
    for (const [text, left] of cases)
      for (let size = 1; size <= text.length; size++)
        expect(await filtered(text, keeps, size), text).to.equal(left)
  })

  it('asks for each with the member whose value it is in, through lists', async () => {
    const asked: string[] = []
    await filtered(
      '{"items":[{"metadata":{"name":"a"}},[{"b":1}]],"c":{"d":{"e":1}},"f":2}',
      (parent, name) => {
        asked.push(`${parent}.${name}`)
        return true
      },
    )
    expect(asked).to.deep.equal([
      '.items',
      'items.metadata',
      'metadata.name',
      'items.b',
      '.c',
      'c.d',
      'd.e',
      '.f',
    ])
  })

  it('is what is left of any value, however its bytes come', async () => {
    for (let seed = 1; seed <= 300; seed++) {
      const random = seededFractions(seed)
      const value = anyValue(random, 4)
      const keeps: Keeps = (parent, name) => (parent.length + name.length) % 3 !== 0
      const text = seed % 2 === 0 ? JSON.stringify(value) : JSON.stringify(value, null, 1)
      const left: unknown = JSON.parse(await filtered(text, keeps, 1 + Math.floor(random() * 9)))
      expect(left, `seed ${seed}`).to.deep.equal(leftOf(value, '', keeps))
    }
  })
})

function anyValue(random: () => number, depth: number): unknown {
  const choice = random()
  const characters = ['a', '"', '\\', '\n', 'é', '😀', '{', '}', ',', ':', '[', ']']
  const text = () =>
    Array.from({ length: Math.floor(random() * 6) }, () => characters[Math.floor(random() * 12)]).join('')
  if (depth === 0 || choice < 0.3)
    return choice < 0.15 ? text() : [1.5e300, -1, true, null][Math.floor(random() * 4)]
  const size = Math.floor(random() * 5)
  if (choice < 0.5) return Array.from({ length: size }, () => anyValue(random, depth - 1))
  return Object.fromEntries(Array.from({ length: size }, () => [text(), anyValue(random, depth - 1)]))
}

/** The same by a walk through the parsed value. */
function leftOf(value: unknown, parent: string, keeps: Keeps): unknown {
  if (Array.isArray(value)) return value.map((each) => leftOf(each, parent, keeps))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => keeps(parent, name))
      .map(([name, each]) => [name, leftOf(each, name, keeps)]),
  )
}
