import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { RULES } from './checker.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const readPage = (page: string) => readFileSync(join(ROOT, page), 'utf8')

describe('the guarantees', () => {
  const promises = RULES.map(({ promise }) => promise)

  it('of docs/reference/guarantees.md are what the checker of fault runs checks, word for word and in its order', () => {
    const [, table = ''] = readPage('docs/reference/guarantees.md').split('| promise |\n|---|\n')
    const rows = table.split('\n\n')[0]!.split('\n')
    expect(rows.map((row) => row.replace(/^\| (.*) \|$/, '$1'))).to.deep.equal(promises)
  })

  it('of the README are five of them, word for word', () => {
    const section = readPage('README.md')
      .split(/^(?=## )/m)
      .find((part) => part.startsWith('## Guarantees\n'))
    const told = [...(section ?? '').matchAll(/^- (.*(?:\n {2}.*)*)$/gm)].map(([, text = '']) =>
      text.replace(/\n +/g, ' ').replace(/\.$/, ''),
    )
    expect(told).to.have.length(5)
    expect(promises).to.include.members(told)
  })
})
