import { expect } from 'chai'
import { describe, it } from 'mocha'
import { Generations } from '../../internal/runtime/generations.ts'

describe('a cache of two generations', () => {
  it('keeps as many as it is to, and at most twice as many', () => {
    const cache = new Generations<number, string>(10)
    const numbers = Array.from({ length: 95 }, (_, n) => n)
    for (const n of numbers) cache.set(n, `${n}`)
    expect(numbers.slice(-10).map((n) => cache.get(n))).to.deep.equal(numbers.slice(-10).map(String))
    expect(numbers.filter((n) => cache.get(n) !== undefined).length).to.be.within(10, 20)
  })

  it('keeps what is asked for, whatever else comes', () => {
    const cache = new Generations<number, string>(10)
    cache.set(-1, 'asked for')
    for (let n = 0; n < 100; n++) {
      cache.set(n, `${n}`)
      if (n % 5 === 0) expect(cache.get(-1)).to.equal('asked for')
    }
  })
})
