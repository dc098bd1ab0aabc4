/**
 * Graceful hand-over: the owner of a shard is told to end (SIGTERM), another node takes it, and what is due meanwhile comes late.
 * No batch is in flight at the time.
 */
import { setTimeout as delay } from 'node:timers/promises'

import type { ClusterNode } from '../test/support/cluster.ts'
import { eventually } from '../test/support/eventually.ts'
import { DUE_MS, type OneShard, ownersInTurn } from './cluster/one-shard.ts'
import { median, spread, table } from './figures.ts'
import { monotonicMs } from './load/program.ts'
import { type Goal, tableOfGoals } from './peers/goals.ts'

/** Between probes, ms; each is a group of its own. */
const EVERY_MS = 20
/** Probes before and behind it, ms. */
const AROUND_MS = 1_000
const LIMIT_MS = 60_000
/** What a hand-over may take at most, ms. */
const BOUND_MS = 1_000

/** Lateness of probes, ms. */
interface HandOver {
  /** Of those that were due before the owner was told. */
  usual: number
  /** The greatest of all. */
  pause: number
}

/** Markdown. `sizes`: items that are live on the shard, ascending; each is handed over `rounds` times. */
export async function measureHandOver(sizes: readonly number[], rounds: number): Promise<string> {
  const rows: string[][] = []
  const goals: Goal[] = []
  for (const [size, pauses] of await ownersInTurn(sizes, rounds, handOver)) {
    const values = pauses.map(({ pause }) => pause)
    const usual = median(pauses.map((each) => each.usual)).toFixed(1)
    rows.push([size.toLocaleString('en'), String(pauses.length), usual, spread(values, 0)])
    const figure = `longest pause, ms, with ${size.toLocaleString('en')} items`
    goals.push({ figure, bound: ['≤', BOUND_MS], values })
  }
  const head = ['live items', 'hand-overs', 'late before it, median ms', 'latest of all, ms']
  return `${table(head, rows)}\n\n${tableOfGoals(goals)}`
}

async function handOver(shard: OneShard, owner: ClusterNode): Promise<HandOver> {
  const storedAt = new Map<number, number>()
  let probing = true
  const probes = (async () => {
    while (probing) {
      storedAt.set(await shard.probe(), monotonicMs())
      await delay(EVERY_MS)
    }
  })()
  await delay(AROUND_MS)
  const told = monotonicMs()
  await owner.stop('SIGTERM')
  await delay(AROUND_MS)
  probing = false
  await probes
  const arrivals = await eventually(
    async () => {
      const found = new Map(await shard.sink.ask({ kind: 'arrivals' }))
      return [...storedAt.keys()].every((marker) => found.has(marker)) && found
    },
    { timeoutMs: LIMIT_MS, everyMs: 100 },
  )
  const late = [...storedAt].map(([marker, at]) => ({
    due: at + DUE_MS,
    ms: arrivals.get(marker)! - at - DUE_MS,
  }))
  return {
    usual: median(late.filter(({ due }) => due < told).map(({ ms }) => ms)),
    pause: Math.max(...late.map(({ ms }) => ms)),
  }
}
