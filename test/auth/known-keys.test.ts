import { expect } from 'chai'
import { describe, it } from 'mocha'
import { KnownKeys } from '../../internal/auth/known-keys.ts'
import type { KnownKey } from '../../internal/domain/model.ts'

const key = (keyId: string, more: Partial<KnownKey> = {}) =>
  ({ keyId, customerId: 'acme', revokedAt: null, ...more }) as KnownKey

const projects = (count: number) => Array.from({ length: count }, (_, n) => `p${n}`)

describe('API keys in memory', () => {
  it('are as many as have room, by their projects, too', () => {
    const known = new KnownKeys(20_000)
    for (let n = 0; n < 30; n++) known.keep(`h${n}`, key(`k${n}`))
    expect([known.size, known.byHash('h9'), known.byHash('h10')?.keyId]).to.deep.equal([20, undefined, 'k10'])
    known.keep('large', key('large', { projectIds: projects(100) }))
    expect([known.size, known.byHash('h26'), known.byHash('h27')?.keyId]).to.deep.equal([4, undefined, 'k27'])
    known.keep('small', key('small', { projectIds: projects(100), revokedAt: 'now' }))
    expect(known.size, 'a revoked one takes no room for its projects').to.equal(4)
  })

  it('take no more room when they are kept again, and are then the last to go', () => {
    const known = new KnownKeys(3_000)
    for (const n of [1, 2, 3, 1, 1, 1]) known.keep(`h${n}`, key(`k${n}`))
    expect(known.size).to.equal(3)
    known.keep('h4', key('k4'))
    expect([1, 2, 3, 4].map((n) => known.byHash(`h${n}`)?.keyId)).to.deep.equal(['k1', undefined, 'k3', 'k4'])
    for (const n of [1, 3, 4]) known.forget(`k${n}`)
    for (const n of [5, 6, 7]) known.keep(`h${n}`, key(`k${n}`))
    expect(known.size).to.equal(3)
    known.forgetAll()
    for (const n of [5, 6, 7]) known.keep(`h${n}`, key(`k${n}`))
    expect(known.values().map(({ keyId }) => keyId)).to.deep.equal(['k5', 'k6', 'k7'])
  })

  it('are known by their secrets only as long as by their hashes, and never as what they were', () => {
    const known = new KnownKeys(2_000)
    const first = key('k1')
    known.keep('h1', first)
    known.keepSecret('s1', 'h1', first)
    expect(known.bySecret('s1')).to.equal(first)
    known.keep('h1', key('k1', { revokedAt: 'now' }))
    expect(known.bySecret('s1'), 'it was revoked').to.equal(undefined)
    known.keepSecret('s1', 'h1', first)
    expect(known.bySecret('s1'), 'it was revoked before it was kept').to.equal(undefined)
    const keep = (n: number) => {
      const record = key(`k${n}`)
      known.keep(`h${n}`, record)
      known.keepSecret(`s${n}`, `h${n}`, record)
    }
    for (const n of [2, 3, 4]) keep(n)
    expect(
      [2, 3, 4].map((n) => known.bySecret(`s${n}`)?.keyId),
      'no room',
    ).to.deep.equal([undefined, 'k3', 'k4'])
    known.forget('k3')
    expect(known.bySecret('s3')).to.equal(undefined)
    known.forgetAll()
    expect(known.bySecret('s4')).to.equal(undefined)
  })
})
