/** The table of a cell. */
import { median, spread, table } from '../figures.ts'
import type { Outcome } from './analysis.ts'
import { type Cell, RATE, type Row } from './cells.ts'
import type { Comparison, Round } from './compare.ts'
import { CONTENDERS } from './contenders.ts'

const HEAD = [
  '',
  'durability',
  'accepted/s',
  'ack p50 / p99 / p99.9 ms',
  'delivered/s',
  'batches/s',
  'items a batch',
  'not delivered / twice / out of order / refused',
  'late p50 / p99 ms',
  'CPU µs an item',
  'of it stores',
  'PSS MB',
  'foreign CPU',
]
/** Those of what nothing is delivered of. */
const OF_DELIVERY = ['delivered/s', 'batches/s', 'items a batch', 'late p50 / p99 ms']

export function tableOf({ cell, rounds, left }: Comparison): string {
  const without = cell.work === 'ingest' ? OF_DELIVERY : []
  const shown = HEAD.map((name) => !without.includes(name))
  const rows = cell.rows.map((row) => {
    const measured = rounds.get(row)
    if (measured) return rowOf(row, cell, measured).filter((_, column) => shown[column])
    const why = `**left out: this machine has no ${left.get(row)!.join(', no ')}**`
    return [row.name, why, ...new Array(shown.filter(Boolean).length - 2).fill('')]
  })
  const head = HEAD.filter((_, column) => shown[column])
  return [titleOf(cell), table(head, rows), ...refusals(rounds)].join('\n\n')
}

/** Why items were refused, of each row where some were. */
function refusals(rounds: Comparison['rounds']): string[] {
  return [...rounds].flatMap(([{ name }, measured]) => {
    const first = measured.find(({ firstFailure }) => firstFailure !== undefined)?.firstFailure
    return first === undefined ? [] : [`First refusal by ${name}: \`${first}\``]
  })
}

function titleOf({ name, work, keys, size, sync }: Cell): string {
  const loop = work === 'rate' ? `${RATE.toLocaleString('en')} items a second` : 'a closed loop'
  const which = keys.zipf === undefined ? 'at random' : `by Zipf's law (${keys.zipf})`
  const deliver = work === 'ingest' ? ', nothing delivered meanwhile' : ''
  return `**${name}**: ${loop} of ${size / 1_024} KB${deliver}, ${keys.count.toLocaleString('en')} keys ${which}, sync ${sync}`
}

function rowOf({ name, contender }: Row, { sync, work }: Cell, rounds: readonly Round[]): string[] {
  const outcomes = rounds.map(({ outcome }) => outcome)
  const of = (figure: (outcome: Outcome) => number, digits: number) => spread(outcomes.map(figure), digits)
  const mid = (figure: (outcome: Outcome) => number) => median(outcomes.map(figure)).toFixed(1)
  const all = (figure: (outcome: Outcome) => number) => String(outcomes.map(figure).reduce((a, b) => a + b))
  const arrived = [
    ({ lost }: Outcome) => lost,
    ({ duplicates }: Outcome) => duplicates,
    ({ inversions }: Outcome) => inversions,
  ]
  const counts = [
    ...arrived.map((figure) => (work === 'ingest' ? '–' : all(figure))),
    all(({ failed }) => failed),
  ]
  return [
    ...[name, CONTENDERS[contender].durability[sync]],
    of(({ acceptedPerSecond }) => acceptedPerSecond, 0),
    [0, 1, 2].map((which) => mid(({ ackMs }) => ackMs[which]!)).join(' / '),
    of(({ deliveredPerSecond }) => deliveredPerSecond, 0),
    mid(batchesPerSecond),
    mid(({ meanBatch }) => meanBatch),
    `${counts.join(' / ')} of ${all(({ accepted }) => accepted)}`,
    `${mid(({ lateMs }) => lateMs[0])} / ${of(({ lateMs }) => lateMs[1], 0)}`,
    spread(
      rounds.map(({ cpuUs }) => cpuUs),
      0,
    ),
    median(rounds.map(({ storesUs }) => storesUs)).toFixed(0),
    (median(rounds.map(({ memory }) => memory)) / 1e6).toFixed(0),
    `${(100 * median(rounds.map(({ foreign }) => foreign))).toFixed(0)} %`,
  ]
}

function batchesPerSecond({ deliveredPerSecond, meanBatch }: Outcome): number {
  return deliveredPerSecond / meanBatch
}
