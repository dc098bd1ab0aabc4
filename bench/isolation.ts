/**
 * One dead destination of 1,000 groups (fault matrix, row 17): how late batches of another buffer come to the same host beside
 * it, and without it.
 */
import { setTimeout as delay } from 'node:timers/promises'

import { eventually } from '../test/support/eventually.ts'
import { spread, table } from './figures.ts'
import { closeLab, type Lab, measure, openLab, p99, type Round } from './lateness.ts'
import { tableOfGoals } from './peers/goals.ts'

const GROUPS = 1_000
const ROUNDS = 5
const FILL = { connections: 64, size: 1_024, explicit: true }
const AT_ONCE = { maxItems: 1, idleTimeoutMs: 60_000, maxWaitFromFirstMs: 60_000 }
/** An attempt ends by itself after 10 s (docs/reference/api.md, "Limits"), ms. */
const ATTEMPT_MS = 11_000

interface Pair {
  without: Round
  beside: Round
  /** Attempts at the dead destination that were begun by the end of the round. */
  unanswered: number
}

/** Markdown. The rounds without and beside it alternate, and each has a dead destination of its own. */
export async function measureIsolation(sync: string): Promise<string> {
  const lab = await openLab(sync)
  const pairs: Pair[] = []
  while (pairs.length < ROUNDS) pairs.push(await pairOf(lab, `dead-${pairs.length}`))
  await closeLab(lab)
  const late = (of: (pair: Pair) => Round) =>
    spread(
      pairs.map((pair) => p99(of(pair))),
      1,
    )
  const head = ['beside', 'late at the sink, p99 ms', 'attempts at the dead destination']
  const rows = [
    ['nothing', late(({ without }) => without), ''],
    [
      `a dead destination of ${GROUPS.toLocaleString('en')} groups`,
      late(({ beside }) => beside),
      spread(
        pairs.map(({ unanswered }) => unanswered),
        0,
      ),
    ],
  ]
  const values = pairs.map(({ without, beside }) => p99(beside) / p99(without))
  const goal = { figure: 'p99 beside it ÷ without', bound: ['≤', 1.5] as ['≤', number], values }
  return `${table(head, rows)}\n\n${tableOfGoals([goal])}`
}

async function pairOf(lab: Lab, bufferId: string): Promise<Pair> {
  const { penstock, generator, sink, url } = lab
  const without = await measure(lab)
  await penstock.createBuffer({ bufferId, batch: AT_ONCE, deliverTo: `${url}never` })
  await sink.ask({ kind: 'reset' })
  const from = { url: penstock.urlOf(bufferId), headers: penstock.headers, firstId: lab.nextId }
  const { failed } = await generator.ask({ kind: 'fill', ...FILL, ...from, firstKey: 0, items: GROUPS })
  if (failed > 0) throw new Error(`${failed} of ${GROUPS} items were not accepted`)
  lab.nextId += GROUPS
  const attempts = async () => (await sink.ask({ kind: 'stats' })).unanswered
  await eventually(async () => (await attempts()) > 0)
  const begun = await attempts()
  const beside = await measure(lab)
  const unanswered = begun + (await attempts())
  await penstock.disableBuffer(bufferId)
  // What runs is not broken off; the next round has nothing beside it.
  await delay(ATTEMPT_MS)
  return { without, beside, unanswered }
}
