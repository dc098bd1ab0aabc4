/** What the bench makes of the turns of an event loop. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { withCollections, workOf } from '../../bench/turns/report.ts'

describe('the turns of an event loop', () => {
  const turn = { from: 100, to: 130, cpuMs: 25, wallMs: 28 }

  it('have the collections that lie within them', () => {
    const collections = [
      { from: 90, ms: 5 },
      { from: 101, ms: 4 },
      { from: 120, ms: 6 },
      { from: 131, ms: 50 },
    ]
    const [measured] = withCollections([turn], collections)
    expect(measured).to.deep.equal({ ...turn, gcMs: 10 })
  })

  it('work for the CPU that collections leave', () => {
    expect(workOf({ ...turn, gcMs: 10 })).to.equal(15)
  })

  it('work for nothing where collections waited longer than they ran', () => {
    expect(workOf({ ...turn, gcMs: 27 })).to.equal(0)
  })
})
