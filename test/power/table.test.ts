/** The results of README.md, and the table that a run prints. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'

import { POWER_KINDS } from './kinds.ts'
import { powerTable } from './table.ts'

/** Kind and title of each row. */
function rowsIn(text: string): string[][] {
  const rows = text.split('\n').filter((line) => /^\| [a-z-]+ \| [^|]+ \| \d/.test(line))
  return rows.map((row) => row.split(' | ').slice(0, 2)).map(([kind, title]) => [kind!.slice(2), title!])
}

describe('the table of power cuts', () => {
  it('tells of each kind on its page, in its words', () => {
    const page = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8')
    const kinds = Object.entries(POWER_KINDS).map(([kind, { title }]) => [kind, title])
    expect(rowsIn(page)).to.deep.equal(kinds)
  })

  it('shows the longest times of a kind, and no times where nothing had to be noticed', () => {
    const summary = {
      cuts: 2,
      accepted: 300,
      deliveries: 250,
      dead: 9,
      unflushed: 0,
      torn: 0,
      shortened: 0,
      repairsCut: 0,
      lost: 0,
      oldestLostMs: 0,
      noticeMs: [],
      downMs: [4_000, 6_040],
      healMs: [900, 300],
      duplicates: 1,
    }
    const lossy = {
      ...summary,
      unflushed: 40,
      torn: 13,
      shortened: 2,
      repairsCut: 1,
      lost: 7,
      oldestLostMs: 4_210,
    }
    const table = powerTable(
      new Map([
        ['always', summary],
        ['interval-torn', { ...lossy, noticeMs: [1_200, 3_400] }],
      ]),
    )
    const cells = table.split('\n').map((row) => row.slice(2, -2).split(' | ').slice(2).join(' | '))
    expect(cells.slice(2)).to.deep.equal([
      '2 | 300 |  | 0 | 0 | 0 |  | 6.0 | 0.9 | 1',
      '2 | 300 | 13 of 40 | 2 | 1 | 7, 4.2 s | 3.4 | 6.0 | 0.9 | 1',
    ])
  })
})
