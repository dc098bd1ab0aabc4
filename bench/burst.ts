/**
 * A customer that asks the management API as fast as it can (docs/reference/api.md, "Limits"): what becomes of another
 * customer's webhooks meanwhile, with the limits of a cluster and without.
 */
import { setTimeout as delay } from 'node:timers/promises'

import { spread, table } from './figures.ts'
import { closeLab, type Lab, measure, openLab, p99, ROUND_SECONDS, type Round } from './lateness.ts'
import type { Told } from './load/client.ts'
import { type Client, startClient } from './load/programs.ts'
import { tableOfGoals } from './peers/goals.ts'
import { fillAccounts } from './rows.ts'

/** Of one key. */
const PER_SECOND = 1_000
const ROUNDS = 9
/** A service that has run for a while is meant: its code has to be compiled first, by requests within the limits. */
const WARM_MS = 40_000
const WARM_PER_SECOND = 10
/** Buckets are full again, ms. */
const REST_MS = 3_000
const GREEDY = { customerId: 'greedy', projects: 20, buffers: 100, deadLetters: 1_000 }
/** As a cluster has it; `npm start` has none. */
const LIMITED = { PENSTOCK_KEY_REQUESTS_PER_SECOND: '10' }
/** As `npm start` is from four cores on, and a cluster: what takes requests runs no shards. */
const APART = { PENSTOCK_PROCESSES: '2' }

interface Pair {
  without: Round
  beside: Round
  told: Told
}

/** Markdown. The rounds without and beside it alternate. */
export async function measureBurst(sync: string): Promise<string> {
  const shapes = {
    'in one process, with limits': await pairsWith(sync, LIMITED),
    'in one process, without limits': await pairsWith(sync, {}),
    'shards apart, with limits': await pairsWith(sync, { ...LIMITED, ...APART }),
  }
  const rows = Object.entries(shapes).flatMap(([name, pairs]) => [
    rowOf(`nothing (${name})`, pairs, ({ without }) => without),
    rowOf(
      `the requests (${name})`,
      pairs,
      ({ beside }) => beside,
      ({ told }) => told,
    ),
  ])
  const head = ['beside', 'ack p99 ms', 'late at the sink, p99 ms', 'answered', 'refused']
  const goals = Object.entries(shapes)
    .filter(([name]) => name.endsWith('with limits'))
    .flatMap(([name, pairs]) => goalsOf(name, pairs))
  return `${table(head, rows)}\n\n${tableOfGoals(goals)}`
}

function goalsOf(name: string, pairs: readonly Pair[]) {
  const ratios = (of: (round: Round) => number) =>
    pairs.map(({ beside, without }) => of(beside) / of(without))
  return [
    { figure: `ack p99 beside them ÷ without (${name})`, values: ratios(({ ackP99Ms }) => ackP99Ms) },
    { figure: `p99 at the sink beside them ÷ without (${name})`, values: ratios(p99) },
  ].map((goal) => ({ ...goal, bound: ['≤', 1.25] as ['≤', number] }))
}

async function pairsWith(sync: string, env: Record<string, string>): Promise<Pair[]> {
  const lab = await openLab(sync, { customers: [GREEDY.customerId], env })
  await fillAccounts(lab.penstock.dataDir, [GREEDY])
  const client = startClient()
  await client.ask({ ...mixOf(lab), perSecond: WARM_PER_SECOND, ms: WARM_MS })
  await delay(REST_MS)
  const pairs: Pair[] = []
  while (pairs.length < ROUNDS) pairs.push(await pairOf(lab, client))
  await Promise.all([closeLab(lab), client.stop()])
  return pairs
}

async function pairOf(lab: Lab, client: Client): Promise<Pair> {
  const without = await measure(lab)
  const [beside, told] = await Promise.all([
    measure(lab),
    client.ask({ ...mixOf(lab), perSecond: PER_SECOND, ms: ROUND_SECONDS * 1_000, endsOnTime: true }),
  ])
  await delay(REST_MS)
  return { without, beside, told }
}

function mixOf({ penstock }: Lab) {
  return {
    kind: 'mix',
    url: penstock.url,
    headers: penstock.as(GREEDY.customerId),
    account: GREEDY,
  } as const
}

function rowOf(
  name: string,
  pairs: readonly Pair[],
  roundOf: (pair: Pair) => Round,
  toldOf?: (pair: Pair) => Told,
): string[] {
  const over = (of: (pair: Pair) => number, digits: number) => spread(pairs.map(of), digits)
  return [
    name,
    over((pair) => roundOf(pair).ackP99Ms, 1),
    over((pair) => p99(roundOf(pair)), 1),
    toldOf ? over((pair) => toldOf(pair).requests, 0) : '',
    toldOf ? over((pair) => toldOf(pair).failed, 0) : '',
  ]
}
