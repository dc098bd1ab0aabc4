/** The table of the README against the tests that there are. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'

import { ROWS as NIGHTLY } from './rows.ts'

const TESTS = join(import.meta.dirname, '..')
const MOCHA = join(TESTS, '..', 'node_modules', 'mocha', 'bin', 'mocha.js')
const ROWS = 26
/** Its rows are no tests of a run of all tests: `npm run test:faults -- --rows 8,9`. */
const NIGHTLY_FILE = 'faults/rows.ts'

interface Line {
  readonly row: number
  /** From `test/`. */
  readonly file: string
  readonly title: string
  readonly processes: string
}

/** The lines of the table; whatever has not its five columns is a line of row NaN. */
function readTable(): Line[] {
  const text = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8')
  const [, table = ''] = text.split('|---|---|---|---|---|\n')
  return table
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) => {
      const [, row, file = '', title = '', processes = ''] =
        /^\| (\d+) \| [^|]* \| [^|]+ \| `([^`|]+)` ([^|]+) \| ([^|]+) \|$/.exec(
          line.replace('| |', '|  |'),
        ) ?? []
      return { row: Number(row), file, title, processes }
    })
}

/** Full titles of the tests of these files, as mocha sees them; none of them is run. */
async function titlesOf(files: readonly string[]): Promise<Map<string, string[]>> {
  const flags = ['--no-config', '--dry-run', '--exit', '--reporter', 'json']
  const paths = files.map((file) => join(TESTS, file))
  const run = promisify(execFile)(process.execPath, [MOCHA, ...flags, ...paths], {
    maxBuffer: 64 * 1024 * 1024,
  })
  const { tests } = JSON.parse((await run).stdout) as { tests: { file: string; fullTitle: string }[] }
  return new Map(
    files.map((file) => [
      file,
      tests.flatMap((test) => (test.file === join(TESTS, file) ? [test.fullTitle] : [])),
    ]),
  )
}

describe('the fault matrix', function () {
  this.timeout(120_000)
  const lines = readTable()
  let titles: Map<string, string[]>

  before(async () => {
    const files = [...new Set(lines.map(({ file }) => file))].filter((file) => existsSync(join(TESTS, file)))
    titles = await titlesOf(files.filter((file) => file !== NIGHTLY_FILE))
    titles.set(
      NIGHTLY_FILE,
      Object.entries(NIGHTLY).map(([row, { title }]) => `row ${row}: ${title}`),
    )
  })

  it('has every row, in order, each line complete', () => {
    const rows = lines.map(({ row }) => row)
    expect([...new Set(rows)]).to.deep.equal(Array.from({ length: ROWS }, (_, index) => index + 1))
    expect(rows).to.deep.equal([...rows].sort((one, other) => one - other))
    expect(lines.filter(({ processes }) => processes !== 'yes' && processes !== 'no')).to.deep.equal([])
  })

  it('has every row of the nightly runs, each at its number', () => {
    const nightly = lines.filter(({ file }) => file === NIGHTLY_FILE)
    expect(nightly.map(({ row, title }) => `row ${row}: ${title}`)).to.deep.equal(titles.get(NIGHTLY_FILE))
  })

  it('names tests that there are', () => {
    const gone = lines.filter(
      ({ file, title }) => !(titles.get(file) ?? []).some((fullTitle) => fullTitle.endsWith(` ${title}`)),
    )
    expect(gone.map(({ row, file, title }) => `${row}: ${file} ${title}`)).to.deep.equal([])
  })
})
