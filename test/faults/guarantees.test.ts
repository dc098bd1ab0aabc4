import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { RULES } from './checker.ts'

describe('the guarantees of the README', () => {
  it('are what the checker of fault runs checks, word for word and in its order', () => {
    const readme = readFileSync(join(import.meta.dirname, '..', '..', 'README.md'), 'utf8')
    const section = readme.split(/^(?=## )/m).find((part) => part.startsWith('## Guarantees\n'))
    const [, table = ''] = (section ?? '').split('| promise |\n|---|\n')
    const rows = table.split('\n\n')[0]!.split('\n')
    const promises = rows.map((row) => row.replace(/^\| (.*) \|$/, '$1'))
    expect(promises).to.deep.equal(RULES.map(({ promise }) => promise))
  })
})
