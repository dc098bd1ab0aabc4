/** What test/README.md tells of the tests. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'

const TESTS = join(import.meta.dirname, '..')
const read = (path: string) => readFileSync(join(TESTS, path), 'utf8')

describe('the page about tests', () => {
  const page = read('README.md')

  it('quotes its example as it stands', () => {
    const example = /^ {3}```ts\n(.*?)^ {3}```$/ms.exec(page)![1]!
    expect(example.replace(/^ {3}/gm, '')).to.equal(read('e2e/first.test.ts'))
  })

  it('lists the variables that repeat what is random', () => {
    const sources = globSync('**/*.ts', { cwd: TESTS }).map(read).join('\n')
    const used = [...sources.matchAll(/process\.env\.([A-Z]+_(?:SEED|RUNS))\b/g)].map(([, name]) => name)
    const listed = [...page.matchAll(/`([A-Z]+_(?:SEED|RUNS))`/g)].map(([, name]) => name)
    expect(listed.toSorted()).to.deep.equal([...new Set(used)].toSorted())
  })

  it('names a folder of each process of a whole run', () => {
    const lanes = [...read('run.ts').matchAll(/^const [A-Z_]+ = \[('\w+\/'.*)\]$/gm)]
    const folders = lanes.flatMap(([, list = '']) => [...list.matchAll(/'(\w+)\/'/g)].map(([, name]) => name))
    expect(folders).to.include.members(['cluster', 'chart', 'e2e'])
    const [, table = ''] = /^\| process \| folders \|\n(.*?)\n\n/ms.exec(page) ?? []
    const rows = table.split('\n')
    const told = rows.flatMap((row) => [...row.matchAll(/`test\/(\w+)`/g)].map(([, name]) => name))
    expect(told.toSorted()).to.deep.equal(folders.toSorted())
  })
})
