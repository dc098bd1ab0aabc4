/** The last test of a run over many files (`test/run.ts`). */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { undocumented } from '../support/answers.ts'

describe('all answers of the run', () => {
  it('are documented', () => {
    expect(undocumented.length, undocumented.join('\n')).to.equal(0)
  })
})
