import { expect } from 'chai'
import { cellOf, type Row, STANDARD } from '../../bench/peers/cells.ts'
import type { Comparison, Round } from '../../bench/peers/compare.ts'
import { goalsOf, tableOfGoals } from '../../bench/peers/goals.ts'

/** Each round: items/s (accepted and delivered alike), CPU µs an item. */
function comparison(cellName: string, rounds: Record<string, [number, number][]>): Comparison {
  const cell = cellOf(cellName)!
  const measured = new Map<Row, Round[]>()
  for (const row of cell.rows) {
    const of = rounds[row.name]
    if (of) measured.set(row, of.map(roundOf))
  }
  return { cell, rounds: measured, left: new Map() }
}

function roundOf([perSecond, cpuUs]: [number, number]): Round {
  const outcome = { acceptedPerSecond: perSecond, deliveredPerSecond: perSecond }
  return { outcome, cpuUs } as Round
}

describe('goals of a comparison', () => {
  it('compare the whole path with whoever is best in each figure, round by round', () => {
    const goals = goalsOf(
      comparison('whole-1k-uniform-1kb-always', {
        penstock: [
          [120, 40],
          [90, 50],
        ],
        hand: [
          [60, 50],
          [50, 50],
        ],
        asynq: [
          [100, 80],
          [100, 80],
        ],
      }),
    )
    expect(goals.map(({ figure, values }) => [figure, values])).to.deep.equal([
      ['end to end items/s ÷ best peer, 1,000 keys, sync always (asynq)', [1.2, 0.9]],
      ['CPU an item ÷ best peer, whole, 1,000 keys, sync always (hand)', [0.8, 1]],
    ])
  })

  it('are not measured where a peer is missing', () => {
    const goals = goalsOf(
      comparison('ingest-1k-uniform-1kb-default', {
        penstock: [[80, 1]],
        'penstock, random ids': [[100, 1]],
        hand: [[40, 1]],
      }),
    )
    expect(goals.map(({ bound, values }) => [...bound, ...values])).to.deep.equal([
      ['≥', 1.5, 2],
      ['≥', 0.9],
      ['≥', 0.8, 0.8],
      ['≤', 0.8, 1],
    ])
    expect(tableOfGoals(goals)).to.include('**not measured**')
  })

  it('are judged by the median', () => {
    const row = (sign: '≥' | '≤', values: number[]) =>
      tableOfGoals([{ figure: 'a', bound: [sign, 1], values }])
    expect(row('≥', [0.5, 1.1, 1.2])).to.include('| 2 of 3 | reached |')
    expect(row('≥', [0.5, 0.9, 1.2])).to.include('| 1 of 3 | **not reached**')
    expect(row('≤', [0.5, 0.9, 1.2])).to.include('| reached |')
    expect(row('≤', [0.5, 1.1, 1.2])).to.include('**not reached**')
  })
})

describe('cells', () => {
  it('are named by their settings', () => {
    expect(cellOf('rate-10k-zipf-10kb-always')).to.deep.include({
      work: 'rate',
      keys: { count: 10_000, zipf: 1.1 },
      size: 10_240,
      sync: 'always',
      rate: 1_000,
    })
    expect(STANDARD.map(cellOf)).not.to.include(undefined)
    for (const name of ['', 'whole', 'whole-5-uniform-1kb-always', 'rate-1k-zipf-1kb-always-more']) {
      expect(cellOf(name), name).to.equal(undefined)
    }
  })

  it('have a name each', () => {
    const figures = STANDARD.flatMap((name) => goalsOf(comparison(name, {}))).map(({ figure }) => figure)
    expect([...new Set(figures)]).to.deep.equal(figures)
  })
})
