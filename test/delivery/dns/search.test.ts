import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { LookupError } from '../../../internal/delivery/dns/failure.ts'
import type { Found } from '../../../internal/delivery/dns/name-servers.ts'
import type { Candidate } from '../../../internal/delivery/dns/resolv-conf.ts'
import { search } from '../../../internal/delivery/dns/search.ts'
import { ManualClock } from '../manual-clock.ts'

const BUDGET_MS = 6_000
const found: Found = { addresses: ['192.0.2.1'], ttl: 30 }

describe('the search for a name', () => {
  let clock: ManualClock
  /** What each name costs and says. */
  let answers: Record<string, Found | 'ENOTFOUND' | 'ESERVFAIL' | 'ETIMEOUT'>
  let asked: [name: string, ms: number][]

  beforeEach(() => {
    clock = new ManualClock()
    asked = []
  })

  async function ask({ name }: Candidate, ms: number): Promise<Found> {
    asked.push([name, ms])
    const answer = answers[name]!
    if (answer === 'ETIMEOUT') clock.advance(ms)
    if (typeof answer === 'string') throw new LookupError(answer)
    return answer
  }

  /** A name in parentheses is the one that stands. */
  function searched(...names: string[]): Promise<Found> {
    const candidates = names.map((text) => ({
      name: text.replace(/[()]/g, ''),
      asItStands: text.startsWith('('),
    }))
    return search(candidates, BUDGET_MS, clock, ask)
  }

  it('ends with the first that has an address', async () => {
    answers = { 'a.one': 'ENOTFOUND', 'a.two': found }
    expect(await searched('a.one', 'a.two', '(a)')).to.equal(found)
    expect(asked.map(([name]) => name)).to.deep.equal(['a.one', 'a.two'])
  })

  it('fails as the name fails that stands, whatever the others did', async () => {
    answers = { 'a.b': 'ESERVFAIL', 'a.b.one': 'ENOTFOUND' }
    expect(await failed(searched('(a.b)', 'a.b.one'))).to.include({ code: 'ESERVFAIL' })
    answers = { 'a.one': 'ESERVFAIL', a: 'ENOTFOUND' }
    expect(await failed(searched('a.one', '(a)'))).to.include({ code: 'ENOTFOUND' })
  })

  it('leaves out the rest of the list after a completed name that is silent, and has time for the name itself', async () => {
    answers = { 'a.one': 'ETIMEOUT', 'a.two': found, a: 'ENOTFOUND' }
    expect(await failed(searched('a.one', 'a.two', '(a)'))).to.include({ code: 'ENOTFOUND' })
    expect(asked).to.deep.equal([
      ['a.one', 2_000],
      ['a', 4_000],
    ])
  })

  it('completes no name that is silent as it stands, which has all the time', async () => {
    answers = { 'a.b': 'ETIMEOUT', 'a.b.one': found }
    expect(await failed(searched('(a.b)', 'a.b.one'))).to.include({ code: 'ETIMEOUT' })
    expect(asked).to.deep.equal([['a.b', BUDGET_MS]])
  })
})

function failed(lookup: Promise<Found>): Promise<unknown> {
  return lookup.then(
    () => undefined,
    (error: unknown) => error,
  )
}
