/** The page that compares Penstock with others: its figures are those of the results, and its facts have sources. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { rowsOf } from './pages.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

const PAGE = read('docs/guide/compare.md')
const RESULTS = read('docs/performance/results.md')
const COLUMNS = [
  ...['accepted/s', 'delivered/s', 'not delivered / twice / out of order / refused', 'late p50 / p99 ms'],
  ...['CPU µs an item', 'PSS MB'],
]

/** The rows of a load in the results: by system, each cell by its head. */
function measured(load: string): Map<string, Record<string, string>> {
  const [, after = ''] = RESULTS.split(`**${load}**`)
  const [heads = [], , ...rows] = after
    .slice(0, after.indexOf('\n**'))
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    )
  return new Map(
    rows.map((cells) => [cells[0]!, Object.fromEntries(heads.map((head, at) => [head, cells[at]!]))]),
  )
}

/** Medians without their ranges. */
function median(cell = ''): string {
  return cell.replace(/ \([^)]*\)/, '')
}

describe('the page that compares', () => {
  const rows = rowsOf(PAGE, 'load', 'system', ...COLUMNS)

  it('has figures of each system for each load', () => {
    const loads = Map.groupBy(rows, ([load]) => load)
    expect(loads.size).to.be.above(4)
    for (const [load, some] of loads)
      expect(
        some.map(([, system]) => system),
        load,
      ).to.deep.equal(['penstock', 'hand', 'asynq'])
  })

  it('has the medians of the results', () => {
    for (const [load = '', system = '', ...cells] of rows) {
      const row = measured(load).get(system)
      expect(cells, `${load} ${system}`).to.deep.equal(COLUMNS.map((head) => median(row?.[head])))
    }
  })

  it('has the other figures of the results that it tells', () => {
    const memory = [...RESULTS.matchAll(/^\| (\w+) \| [^|]+ \| 120,000 \| \d+ \| [^|]+ \| (\d+) \|$/gm)]
    const told =
      /Penstock takes ([\d,]+) bytes, the hand-written program ([\d,]+), and Asynq\s+([\d,]+)/.exec(PAGE)
    expect(told?.slice(1).map((text) => text.replace(',', ''))).to.deep.equal(
      memory.map(([, , bytes]) => bytes),
    )
    const acks = ['penstock', 'hand', 'asynq'].map((system) => {
      const row = measured('rate-1k-uniform-1kb-default').get(system)
      return row!['ack p50 / p99 / p99.9 ms']!.split(' / ')[0]
    })
    expect(PAGE).to.include(`p50 is ${acks[0]} ms, against ${acks[1]} and ${acks[2]}`)
    expect(RESULTS).to.match(
      /hand-written, 1,000 keys, 10 KB, default, nothing delivered \| ≥ 1\.5 \| 1\.19 /,
    )
    for (const [name, cpu] of [
      ['Outpost (a POST an event)', 983],
      ['for scale: hand-written', 592],
    ]) {
      expect(RESULTS).to.match(
        new RegExp(`^\\| ${String(name).replace(/[()]/g, '\\$&')} \\|.*\\| ${cpu} \\|`, 'm'),
      )
      expect(PAGE).to.include(`${cpu} µs`)
    }
  })

  it('gives the source of what it says about others', () => {
    for (const heading of ['Svix, Convoy and Outpost', 'Inngest', 'Asynq']) {
      const part = PAGE.split(/^(?=## )/m).find((text) => text.startsWith(`## ${heading}\n`))!
      expect(part.match(/\[source\]\(https:\/\/[^)]+\)/g), heading).to.have.length.above(3)
    }
  })
})
