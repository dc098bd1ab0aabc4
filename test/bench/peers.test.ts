import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { readKept, SECTION, sectionOf } from '../../bench/peers/kept.ts'
import { ALL } from '../../bench/peers.ts'
import { sectionOf as sectionOfPage } from '../support/sections.ts'

describe('the comparison with other systems', () => {
  const kept = readKept()

  it('stands in the page of results as it was measured', () => {
    const page = readFileSync(
      join(import.meta.dirname, '..', '..', 'docs', 'performance', 'results.md'),
      'utf8',
    )
    const current = sectionOfPage(page, SECTION) === sectionOf(kept, ALL)
    expect(current, 'stale: run `npm run bench -- peers`, or a part of it').to.equal(true)
  })

  it('has every part, and no figure without a measurement', () => {
    expect(Object.keys(kept)).to.have.members([...ALL])
    for (const { goals } of Object.values(kept)) {
      for (const { figure, values } of goals) expect(values, figure).to.not.deep.equal([])
    }
  })
})
