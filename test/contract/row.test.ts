import { expect } from 'chai'
import { describe, it } from 'mocha'
import { documentedTable } from '../../internal/http/openapi/document.ts'
import { publicEndpoints } from '../../internal/http/openapi/public-endpoints.ts'
import { type Evidence, missing, type Row, type Shown } from './row.ts'
import { rows } from './rows.ts'

const nothing: Shown = { exchanges: [], declared: () => false, passed: [] }

function row(shownBy: Evidence): Row {
  return { table: 'T', row: 'r', shownBy }
}

describe('a row of the contract', () => {
  it('is missing when nothing shows it', () => {
    const some = [row({ operationId: 'a', status: 200 }), row({ declared: 'd' }), row({ tests: ['t'] })]
    expect(missing(some, nothing)).to.deep.equal(['T: r', 'T: r', 'T: r'])
    expect(missing([row({ never: 'why' })], nothing)).to.deep.equal([])
  })

  it('is shown by an answer of its endpoint, status, code and text only', () => {
    const of = (evidence: Evidence) =>
      missing([row(evidence)], {
        ...nothing,
        exchanges: [{ operationId: 'a', status: 409, code: 'c', error: 'the text' }],
      })
    expect(of({ operationId: 'a', status: 409 })).to.deep.equal([])
    expect(of({ operationId: 'a', status: 409, code: 'c', error: 'text' })).to.deep.equal([])
    expect(of({ operationId: 'b', status: 409 })).to.have.length(1)
    expect(of({ operationId: 'a', status: 200 })).to.have.length(1)
    expect(of({ operationId: 'a', status: 409, code: 'd' })).to.have.length(1)
    expect(of({ operationId: 'a', status: 409, error: 'other' })).to.have.length(1)
  })

  it('is shown by all of its tests, not by some', () => {
    const passed = ['suite one', 'suite two']
    expect(missing([row({ tests: ['suite one', 'two'] })], { ...nothing, passed })).to.deep.equal([])
    expect(missing([row({ tests: ['suite one', 'three'] })], { ...nothing, passed })).to.have.length(1)
  })

  it('is shown by what a test declared', () => {
    const declared = (name: string) => name === 'd'
    expect(missing([row({ declared: 'd' })], { ...nothing, declared })).to.deep.equal([])
    expect(missing([row({ declared: 'e' })], { ...nothing, declared })).to.have.length(1)
  })

  it('there is one for every endpoint, and none for what is no endpoint or status of it', () => {
    const operations = [...publicEndpoints, ...documentedTable()].map(({ operationId }) => operationId)
    const named = rows.flatMap(({ shownBy }) => ('operationId' in shownBy ? [shownBy.operationId] : []))
    expect([...new Set(named)]).to.have.members(operations)
  })

  it('is written once', () => {
    const names = rows.map(({ table, row: name }) => `${table}: ${name}`)
    expect(names.filter((name, index) => names.indexOf(name) !== index)).to.deep.equal([])
  })
})
