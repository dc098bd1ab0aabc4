import { expect } from 'chai'
import { describe, it } from 'mocha'

import { duplicatesByFault, timesOfFaults } from './duplicates.ts'
import { type Delivery, type History, newHistory } from './history.ts'
import type { RowSummary } from './rows.ts'
import { delivery } from './sample-history.ts'
import { rowTotalsOf, totalsOf } from './totals.ts'

const attempt = (at: number, status: number) => delivery(1, [], { at, status })

describe('the duplicates of runs under faults', () => {
  const history = {
    ...newHistory({ shards: 1, shape: 'one process' }),
    faults: ['kill actor-1', 'kill actor-2', 'destination-reset -'].map((kind, index) => ({
      kind,
      from: 100 * (index + 1),
      to: 100 * (index + 1) + 50,
    })),
    deliveries: [attempt(10, 500), attempt(110, 200), attempt(260, 200), attempt(310, 200)],
  }

  it('are what came again after a 2xx, by the kind of the latest fault before', () => {
    expect(duplicatesByFault(history)).to.deep.equal({ 'kill actor': 1, 'destination-reset': 1 })
    expect(timesOfFaults(history.faults)).to.deep.equal({ 'kill actor': 2, 'destination-reset': 1 })
  })

  it('are of the busy machine when no fault can be the cause', () => {
    const GIVEN_UP_MS = 10_000
    const answered = attempt(110, 200)
    const without = (first: Partial<Delivery>, stalls: History['stalls'] = []) =>
      duplicatesByFault({
        ...history,
        faults: [],
        stalls,
        deliveries: [{ ...answered, ...first }, attempt(GIVEN_UP_MS + 200, 200)],
      })
    expect(without({ closedAt: GIVEN_UP_MS + 100, answeredAt: GIVEN_UP_MS })).to.deep.equal({ 'given up': 1 })
    expect(without({}, [{ from: 1_000, to: 4_000 }])).to.deep.equal({ stall: 1 })
    expect(without({}, [{ from: 1_000, to: 1_500 }]), 'a short one').to.deep.equal({ none: 1 })
  })

  it('are added over all runs, each kind with how often it was there', () => {
    const run = (seed: number, heal: number) => ({
      seed,
      faults: [],
      accepted: 100,
      groups: 3,
      deliveries: 10,
      dead: 1,
      healMs: [5, heal],
      times: timesOfFaults(history.faults),
      duplicates: { 'kill actor': seed },
      selfEnds: [],
    })
    expect(totalsOf([run(7, 30), run(8, 20)]).split('\n')).to.deep.equal([
      '| fault | times | batches sent again |',
      '|---|---|---|',
      '| destination-reset | 2 | 0 |',
      '| kill actor | 4 | 15 |',
      '',
      '2 runs (seeds 7, 8), 200 items, 20 deliveries, 2 dead letters; longest time to heal 30 ms',
    ])
  })

  it('of rows have a line each', () => {
    const row = { accepted: 700, selfEnds: [], takeOverMs: 0 }
    const rows = new Map<string, RowSummary>([
      ['12', { ...row, duplicates: {}, pauseMs: 90, handOverMs: 400 }],
      ['5', { ...row, duplicates: { 'kill nats': 2 }, pauseMs: 9_000, handOverMs: 0 }],
    ])
    expect(
      rowTotalsOf(rows, (name) => `title ${name}`)
        .split('\n')
        .slice(2),
    ).to.deep.equal([
      '| 12 | title 12 | 700 | 0 | 90 | 400 |',
      '| 5 | title 5 | 700 | 2 (kill nats) | 9000 |  |',
    ])
  })
})
