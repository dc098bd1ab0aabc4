/** The last test of a whole run (`test/run.ts`): what all the others have shown. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { isDeclared, passedTests, traffic } from '../support/traffic.ts'
import { missing } from './row.ts'
import { rows } from './rows.ts'

describe('the whole run', () => {
  it('showed every row of the contract', () => {
    const shown = { exchanges: traffic(), declared: isDeclared, passed: passedTests() }
    const some = missing(rows, shown)
    expect(some.length, `no test showed:\n${some.join('\n')}\n`).to.equal(0)
  })
})
