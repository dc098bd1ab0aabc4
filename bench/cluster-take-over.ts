/** Forced take-over: the owner of a shard is killed, and a node that was idle until then goes on with what it held. */
import type { ClusterNode } from '../test/support/cluster.ts'
import { eventually } from '../test/support/eventually.ts'
import { type OneShard, ownersInTurn } from './cluster/one-shard.ts'
import { spread, table } from './figures.ts'
import { monotonicMs } from './load/program.ts'
import { replayed } from './million/shard.ts'

const LIMIT_MS = 60_000

/** Ms of each phase, and of all of them. */
interface TakeOver {
  /** From SIGKILL to the claim: the lease runs out, and that is noticed. */
  lease: number
  /** Epoch, fold, proof, Postgres. */
  claim: number
  replay: number
  /** From the end of the replay to the arrival of what was due meanwhile. */
  delivery: number
  whole: number
}

/** Markdown. `sizes`: items that are live on the shard, ascending; each is taken over `rounds` times. */
export async function measureTakeOver(sizes: readonly number[], rounds: number): Promise<string> {
  const measured = await ownersInTurn(sizes, rounds, takeOver)
  const rows = measured.map(([size, takeOvers]) => rowOf(size, takeOvers))
  const head = ['live items', 'take-overs', 'lease, ms', 'claim, ms', 'replay, ms', 'first delivery, ms']
  return table([...head, 'SIGKILL to first delivery, ms'], rows)
}

async function takeOver(shard: OneShard, owner: ClusterNode, standby: ClusterNode): Promise<TakeOver> {
  const [killedAt, killed] = [Date.now(), monotonicMs()]
  await owner.stop('SIGKILL')
  const probe = await shard.probe()
  const arrived = await eventually(() => arrivalOf(shard, probe), { timeoutMs: LIMIT_MS, everyMs: 50 })
  // Counted from the claim, so it holds both phases.
  const ownMs = await replayed(standby)
  const [provenAt, runsAt] = [timeOf(standby, 'replaying'), timeOf(standby, 'running')]
  const replay = runsAt - provenAt
  const whole = arrived - killed
  return {
    lease: runsAt - ownMs - killedAt,
    claim: ownMs - replay,
    replay,
    delivery: whole - (runsAt - killedAt),
    whole,
  }
}

async function arrivalOf({ sink }: OneShard, marker: number): Promise<number | false> {
  return new Map(await sink.ask({ kind: 'arrivals' })).get(marker) ?? false
}

/** Unix ms at which the shard came into the state on this node. */
function timeOf({ service }: ClusterNode, state: string): number {
  const event = service.events.find(({ msg, state: now }) => msg === 'ownership' && now === state)
  if (!event) throw new Error(`the shard was never ${state}:\n${service.output()}`)
  return Date.parse(String(event.time))
}

function rowOf(items: number, takeOvers: readonly TakeOver[]): string[] {
  const column = (phase: keyof TakeOver) =>
    spread(
      takeOvers.map((each) => each[phase]),
      0,
    )
  return [
    ...[items.toLocaleString('en'), String(takeOvers.length)],
    ...(['lease', 'claim', 'replay', 'delivery', 'whole'] as const).map(column),
  ]
}
