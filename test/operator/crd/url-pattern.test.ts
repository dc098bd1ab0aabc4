/** The pattern of URLs against what the service takes; `URL_SEED` repeats a run, `URL_RUNS` sets how many it looks at. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { parseBufferCreate } from '../../../internal/domain/buffer.ts'
import { DESTINATION_PATTERN, UNREPAIRED_PATTERN } from '../../../operator/crd/url-pattern.ts'
import { bodyOf, bufferVectors } from '../../support/buffer-vectors.ts'
import { seededFractions } from '../../support/seeded.ts'
import type { Json } from './fields.ts'

const seed = Number(process.env.URL_SEED ?? Math.floor(Math.random() * 2 ** 31))
const runs = Number(process.env.URL_RUNS ?? 40_000)

const unrepaired = javaScript(UNREPAIRED_PATTERN)
const destination = javaScript(DESTINATION_PATTERN)

describe('the pattern of URLs', () => {
  it('is small enough for the limit of what an expression may cost', () => {
    expect(DESTINATION_PATTERN.length).to.be.below(5_000)
  })

  it(`agrees with the URL parser on ${runs} made up ones (URL_SEED=${seed})`, function () {
    this.timeout(120_000)
    const random = seededFractions(seed)
    const judged = { taken: 0, refused: 0, mapped: 0 }
    for (let run = 0; run < runs; run++) {
      const host = hostOf(random)
      const url = `http://${host}${portOf(random)}${pick(random, ENDS)}`
      const taken = isTaken(url)
      // Such a host is the operator's to judge.
      const mapped = /[^\0-\x7f]|%/.test(host)
      judged[mapped ? 'mapped' : taken ? 'taken' : 'refused']++
      if (isMatched(url) === taken || (mapped && !taken)) continue
      expect.fail(`${JSON.stringify(url)} is ${taken ? 'taken' : 'refused'} by the service`)
    }
    // Neither verdict is rare, or this would show little.
    for (const count of Object.values(judged)) expect(count).to.be.above(runs / 50)
  })

  it('agrees with the verdicts of the vectors', () => {
    const about = bufferVectors.documents.filter(({ name }) => name.startsWith('delivery.url: "http'))
    expect(about).to.have.length.above(150)
    for (const vector of about) {
      const { url } = bodyOf(vector, '').delivery as { url: string }
      const isFine = vector.verdict === 'taken' || vector.because !== undefined
      expect(isMatched(url) && isTakenBeside(url), vector.name).to.equal(isFine)
    }
  })
})

function javaScript(pattern: string): RegExp {
  return new RegExp(pattern.replaceAll('\\x{', '\\u{'), 'u')
}

function isMatched(url: string): boolean {
  return unrepaired.test(url) && destination.test(url)
}

/** Other rules of the same field. */
function isTakenBeside(url: string): boolean {
  return !/^[^/]*\/\/[^/?#]*@/.test(url) && url.isWellFormed() && !url.includes('\0')
}

function isTaken(url: string): boolean {
  const delivery = { ...(bufferVectors.base.delivery as Json), url }
  return parseBufferCreate({ ...bufferVectors.base, delivery }).ok
}

type Random = () => number

function pick<T>(random: Random, among: readonly T[]): T {
  return among[Math.floor(random() * among.length)]!
}

const ENDS = ['', '/', '/a', '?a', '#', '/%zz', '\u0001', '/\u007f', '/a b', '/\\', '\u001f\u0002', '/ä']
const PORTS = ['', '', '', ':', ':80', ':065535', ':65536', ':8a', ':-1', ':1:2', ':00000000', ':99999']

function portOf(random: Random): string {
  if (random() < 0.8) return pick(random, PORTS)
  return `:${Math.floor(random() * 70_000)}`
}

function hostOf(random: Random): string {
  const kind = random()
  if (kind < 0.35) return joined(random, 6, '.', () => numeral(random))
  if (kind < 0.65) return `[${groups(random)}]`
  if (kind < 0.9) return joined(random, 4, '.', () => label(random))
  return pick(random, ['[', '::1', 'a b', '[::1]a', '[::1%eth0]', 'a[', 'user@h', '', '.', '..', 'h\\'])
}

function joined(random: Random, most: number, by: string, part: () => string): string {
  return Array.from({ length: 1 + Math.floor(random() * most) }, part).join(by)
}

/** Around the bounds of one to four bytes, in three bases. */
function numeral(random: Random): string {
  if (random() < 0.1) return label(random)
  const bound = 256 ** pick(random, [0, 1, 1, 1, 2, 3, 4])
  const number = Math.max(0, bound - 2 + Math.floor(random() * 4))
  const some = random() < 0.5 ? number : Math.floor(random() * bound)
  return pick(random, [
    `${some}`,
    `${some}`,
    `0${some.toString(8)}`,
    `0x${some.toString(16)}`,
    `00${some}`,
    '0X',
  ])
}

const LETTERS = ['a', 'Z', '0', '9', '8', 'x', '-', '_', '{', '}', '$', '"', '~', '*', "'", '`', '!', ',']
const ODD = [
  '^',
  '|',
  '<',
  '%',
  '%41',
  '%2f',
  '%2e',
  '%7f',
  '%C3%BC',
  '\u007f',
  '\u0001',
  'ü',
  '\u00ad',
  '１',
]

function label(random: Random): string {
  if (random() < 0.05) return ''
  return joined(random, 5, '', () => pick(random, random() < 0.06 ? ODD : LETTERS))
}

function groups(random: Random): string {
  const parts = Array.from({ length: Math.floor(random() * 10) }, () =>
    pick(random, ['0', '1', 'ffff', 'Ab1']),
  )
  if (random() < 0.6) parts.splice(Math.floor(random() * (parts.length + 1)), 0, '')
  if (random() < 0.3) parts.push(pick(random, ['1.2.3.4', '255.0.0.256', '1.2.3', '01.2.3.4', '0.0.0.0']))
  const text = parts.join(':')
  return random() < 0.3 ? text.replace(/^:/, '::').replace(/:$/, '::') : text
}
