import { expect } from 'chai'
import fc from 'fast-check'
import { describe, it } from 'mocha'
import { backoffDelayMs } from '../../internal/domain/backoff.ts'
import { creditsFor, creditsForBytes, isPadded } from '../../internal/domain/credits.ts'
import { errorClassOf, outcomeOf } from '../../internal/domain/outcome.ts'

describe('credits', () => {
  const costs: [bytes: number, credits: number][] = [
    [0, 1],
    [1, 1],
    [1024, 1],
    [1025, 2],
    [2048, 2],
    [2049, 3],
    [1_000_000, 977],
  ]
  for (const [bytes, credits] of costs) {
    it(`for ${bytes} bytes are ${credits}`, () => expect(creditsForBytes(bytes)).to.equal(credits))
  }

  it('count the bytes of the serialisation, not of the request', () => {
    expect(creditsFor(JSON.parse(`{ "a" : ${' '.repeat(2000)} 1 }`))).to.equal(1)
    expect(creditsFor('a'.repeat(1022))).to.equal(1)
    expect(creditsFor('a'.repeat(1023))).to.equal(2)
    expect(creditsFor('ö'.repeat(511))).to.equal(1)
    expect(creditsFor('ö'.repeat(512))).to.equal(2)
    expect(creditsFor('\u0001'.repeat(171))).to.equal(2)
    expect(creditsFor(JSON.parse('"\\ud800"'))).to.equal(1)
  })

  it('are not paid for padding: over 16 KiB a body has at most four times what it pays for', () => {
    expect(isPadded(16_384, 1), 'small ones may be written as they like').to.equal(false)
    expect(isPadded(16_385, 1)).to.equal(true)
    expect([isPadded(20_000, 5_000), isPadded(20_001, 5_000)]).to.deep.equal([false, true])
  })

  for (const scalar of [null, 0, '', false, [], {}]) {
    it(`for ${JSON.stringify(scalar)} are 1`, () => expect(creditsFor(scalar)).to.equal(1))
  }
})

describe('the delay before a retry', () => {
  const backoff = { initialMs: 1000, maxMs: 60_000, multiplier: 2 }

  it('grows by the multiplier up to maxMs', () => {
    const delays = [1, 2, 3, 4, 5, 6, 7, 8].map((n) => backoffDelayMs(backoff, n))
    expect(delays).to.deep.equal([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000])
  })

  it('is whole milliseconds', () => {
    expect(backoffDelayMs({ initialMs: 1000, maxMs: 60_000, multiplier: 1.1 }, 2)).to.equal(1100)
    expect(backoffDelayMs({ initialMs: 3, maxMs: 60_000, multiplier: 1.5 }, 2)).to.equal(5)
  })

  it('stays at maxMs when the power overflows, and at 0 when it starts at 0', () => {
    expect(backoffDelayMs({ ...backoff, multiplier: 100 }, 1_000_000)).to.equal(60_000)
    expect(backoffDelayMs({ ...backoff, initialMs: 0, multiplier: 100 }, 1_000_000)).to.equal(0)
  })

  it('never shrinks and never leaves its bounds', () => {
    const any = fc.record({
      initialMs: fc.nat(86_400_000),
      maxMs: fc.nat(86_400_000),
      multiplier: fc.double({ min: 1, max: 100, noNaN: true }),
    })
    fc.assert(
      fc.property(any, fc.integer({ min: 1, max: 50 }), (config, n) => {
        const [now, next] = [backoffDelayMs(config, n), backoffDelayMs(config, n + 1)]
        expect(Number.isSafeInteger(now)).to.equal(true)
        expect(now).to.be.within(0, config.maxMs)
        expect(next).to.be.at.least(now)
      }),
    )
  })

  for (const n of [0, -1, 1.5, Number.NaN]) {
    it(`throws for retry ${n}`, () => expect(() => backoffDelayMs(backoff, n)).to.throw(RangeError))
  }
})

describe('the outcome of an attempt', () => {
  const statuses: [status: number, outcome: string, errorClass: string | null][] = [
    [199, 'retry', 'http_other'],
    [200, 'delivered', null],
    [204, 'delivered', null],
    [299, 'delivered', null],
    [300, 'retry', 'http_other'],
    [302, 'retry', 'http_other'],
    [399, 'retry', 'http_other'],
    [400, 'rejected', 'http_4xx'],
    [429, 'rejected', 'http_4xx'],
    [499, 'rejected', 'http_4xx'],
    [500, 'retry', 'http_5xx'],
    [599, 'retry', 'http_5xx'],
    [600, 'retry', 'http_other'],
    [999, 'retry', 'http_other'],
  ]
  for (const [status, outcome, errorClass] of statuses) {
    it(`of ${status} is ${outcome}`, () => {
      expect(outcomeOf(status)).to.equal(outcome)
      expect(errorClassOf(status)).to.equal(errorClass)
    })
  }

  it('without a response is a retry, of a class that no status tells', () => {
    expect(outcomeOf(0)).to.equal('retry')
    expect(() => errorClassOf(0)).to.throw(RangeError)
  })
})
