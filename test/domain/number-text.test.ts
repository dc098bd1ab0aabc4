import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { numberText } from '../../internal/domain/number-text.ts'

const textAt = (json: string, path: string) => numberText(Buffer.from(json), path.split('.'))

/** What a walk over the parsed value finds; the scan must find the text of the same number. */
function valueAt(root: unknown, segments: string[]): unknown {
  let value = root
  for (const segment of segments) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, segment)) return undefined
    if (Array.isArray(value) && !/^\d+$/.test(segment)) return undefined
    value = (value as Record<string, unknown>)[segment]
  }
  return value
}

describe('the source text of a number', () => {
  const numbers = [
    '0',
    '-0',
    '1',
    '1.0',
    '1.50',
    '1e2',
    '1E+2',
    '-1.5e-7',
    '1e400',
    '9007199254740993',
    '1e-400',
  ]
  for (const number of numbers) {
    it(`is ${number} as sent`, () => {
      for (const json of [
        `{"a":${number}}`,
        `{"a" : ${number} }`,
        `{"a":\n${number}\t,"b":2}`,
        `{"b":2,"a":${number}}`,
      ]) {
        expect(textAt(json, 'a'), json).to.equal(number)
      }
      expect(textAt(`[${number},7]`, '0')).to.equal(number)
      expect(textAt(`[7,[8,${number}]]`, '1.1')).to.equal(number)
    })
  }

  const cases: [json: string, path: string, text: string | null][] = [
    ['{"a":1,"a":2}', 'a', '2'],
    ['{"a":1,"a":"x"}', 'a', null],
    ['{"a":"x","a":1}', 'a', '1'],
    ['{"a":1,"a":{"b":2}}', 'a', null],
    ['{"a":{"b":1},"a":{"b":2}}', 'a.b', '2'],
    ['{"a":{"b":1},"a":{"c":2}}', 'a.b', null],
    ['{"a":{"b":1},"a":2}', 'a.b', null],
    ['{"a":{"b":1},"a":{"b":2,"b":3}}', 'a.b', '3'],
    ['{"\\u0061":1}', 'a', '1'],
    ['{"a":1,"\\u0061":2}', 'a', '2'],
    ['{"\\u0061":{"\\u0062":5}}', 'a.b', '5'],
    ['{"a\\u0000":1}', 'a', null],
    ['{"\\"a":1}', '"a', '1'],
    ['{"\\\\":1}', '\\', '1'],
    ['{"größe":3}', 'größe', '3'],
    ['{"gr\\u00f6\\u00DFe":3}', 'größe', '3'],
    ['{"\\ud83d\\ude80":3}', '🚀', '3'],
    ['{"b":"a","a":1}', 'a', '1'],
    ['{"b":"\\"a\\":9","a":1}', 'a', '1'],
    ['{"b":{"a":9},"a":1}', 'a', '1'],
    ['{"b":[{"a":9}],"a":1,"c":{"a":8}}', 'a', '1'],
    ['{"b":{"c":[{"a":9}]},"a":1}', 'a', '1'],
    ['[[{"a":[]}],1]', '1', '1'],
    ['{"a":[{"b":9}]}', 'a.b', null],
    ['{"a":[1,2,3]}', 'a.1', '2'],
    ['{"a":[[1],{"b":2},3]}', 'a.1.b', '2'],
    ['{"a":[[1,2],[3,4]]}', 'a.1.0', '3'],
    ['{"a":[1,2,3]}', 'a.3', null],
    ['{"a":[1,2,3]}', 'a.01', null],
    ['{"a":[]}', 'a.0', null],
    ['{"a":["1",2]}', 'a.0', null],
    ['{"a":{"0":7}}', 'a.0', '7'],
    ['{"a":true}', 'a', null],
    ['{"a":null}', 'a', null],
    ['{"a":[1]}', 'a', null],
    ['{"__proto__":{"a":4}}', '__proto__.a', '4'],
    ['{"":{"a":4}}', 'a', null],
    ['1', 'a', null],
    ['"a"', 'a', null],
    ['{}', 'a', null],
  ]
  for (const [json, path, text] of cases) {
    it(`at ${path} of ${json} is ${text}`, () => expect(textAt(json, path)).to.equal(text))
  }

  it('is found behind a million levels', () => {
    const deep = '['.repeat(1_000_000) + ']'.repeat(1_000_000)
    expect(textAt(`{"b":${deep},"a":1}`, 'a')).to.equal('1')
  })

  it('agrees with JSON.parse wherever a number is', () => {
    const name = fc.constantFrom('a', 'a', '0', '0', '1', '__proto__', 'ö', '"\\')
    const tree = fc.letrec<{ node: unknown }>((tie) => ({
      node: fc.oneof(
        { maxDepth: 5, depthSize: 'medium' },
        fc.oneof(
          fc.double({ noNaN: true, noDefaultInfinity: true }),
          fc.integer(),
          fc.string(),
          fc.constant(null),
        ),
        fc.array(tie('node'), { maxLength: 3 }),
        fc.array(fc.tuple(name, tie('node')), { maxLength: 4 }).map((members) => new Members(members)),
      ),
    })).node
    const path = fc.array(name, { minLength: 1, maxLength: 4 })
    const turns = fc.array(fc.nat(3), { minLength: 6, maxLength: 6 })
    fc.assert(
      fc.property(tree, path, turns, fc.infiniteStream(fc.nat(3)), (node, anywhere, turns, noise) => {
        const json = write(node, noise)
        const root = JSON.parse(json)
        for (const segments of [anywhere, walk(root, turns)].filter(({ length }) => length > 0)) {
          const found = numberText(Buffer.from(json), segments)
          const value = valueAt(root, segments)
          expect(found === null ? null : Number(found), json).to.equal(
            typeof value === 'number' ? value : null,
          )
        }
      }),
      { numRuns: 2000 },
    )
  })
})

/** A path that leads to a leaf of `root`, by one turn a level. */
function walk(root: unknown, turns: readonly number[]): string[] {
  const segments: string[] = []
  let value = root
  for (const turn of turns) {
    if (typeof value !== 'object' || value === null) break
    const names = Object.keys(value)
    const name = names[turn % names.length]
    if (name === undefined) break
    segments.push(name)
    value = (value as Record<string, unknown>)[name]
  }
  return segments
}

/** An object in source form: its names may repeat. */
class Members {
  readonly list: readonly [string, unknown][]
  constructor(list: readonly [string, unknown][]) {
    this.list = list
  }
}

/** JSON text with blanks and escapes strewn in by `noise`. */
function write(node: unknown, noise: Iterator<number>): string {
  const roll = () => noise.next().value as number
  const blank = () => ['', ' ', '\n', '\t '][roll()]
  const text = (value: string) => (roll() === 0 ? `"${escaped(value)}"` : JSON.stringify(value))
  const visit = (value: unknown): string => {
    if (value instanceof Members) {
      const members = value.list.map(([name, member]) => `${blank()}${text(name)}${blank()}:${visit(member)}`)
      return `${blank()}{${members.join(',')}${blank()}}${blank()}`
    }
    if (Array.isArray(value)) return `${blank()}[${value.map(visit).join(',')}${blank()}]${blank()}`
    return `${blank()}${typeof value === 'string' ? text(value) : JSON.stringify(value)}${blank()}`
  }
  return visit(node)
}

/** Every UTF-16 unit as its escape. */
function escaped(text: string): string {
  const units = Array.from({ length: text.length }, (_, i) => text.charCodeAt(i))
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
}

const SEED = Number(process.env.FUZZ_SEED ?? Date.now() % 1_000_000_000)

describe('the names of a JSON text', () => {
  it(`are those that JSON.parse reads, whatever was read before (FUZZ_SEED=${SEED})`, () => {
    const piece = fc.constantFrom(
      'c',
      'n',
      'digo',
      'mero',
      '\\u00f3',
      '\\u00fa',
      '\\\\u00f',
      '\\\\',
      '\\n',
      'é',
      '',
    )
    const name = fc.tuple(piece, piece, piece).map((pieces) => pieces.join(''))
    const body = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => {
      const members = names.map((each, at) => `"${each}":${at}`)
      return `{"event":"x",${members.join(',')}}`
    })
    fc.assert(
      fc.property(body, (json) => {
        const { event: _, ...numbers } = JSON.parse(json) as Record<string, unknown>
        for (const [key, value] of Object.entries(numbers))
          expect(numberText(Buffer.from(json), [key]), `${json} ${key}`).to.equal(String(value))
      }),
      { numRuns: 20_000, seed: SEED },
    )
  })
})
