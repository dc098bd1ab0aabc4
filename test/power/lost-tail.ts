/**
 * A broker that came back without the last messages that it acknowledged (docs/reference/guarantees.md, "A broker that
 * lost its tail"): which shards must notice, and the way back of docs/operations/runbooks.md, "A lost tail".
 */
import type { JetStreamManager } from 'nats'

import type { ClusterTrial } from '../faults/cluster-trial.ts'
import { runCommand } from '../support/command.ts'
import { eventually } from '../support/eventually.ts'

/** A shard tells of its loss so soon after the broker is back, on a busy machine, ms. */
const NOTICE_MS = 60_000
/** What an ingress logs of a shard. */
const LOST_WEBHOOKS = 'the broker lost webhooks that it had acknowledged'

/** Last sequences of inbox and journal, by shard. */
export type Tails = readonly (readonly [inbox: number, journal: number])[]

export interface Repair {
  /** From the broker that is back until all who have to tell of the losses did (`isTold`), ms. */
  readonly noticeMs: number
  readonly shards: readonly number[]
}

export async function readTails(manager: JetStreamManager, shards: number): Promise<Tails> {
  const end = async (stream: string) => (await manager.streams.info(stream)).state.last_seq
  return Promise.all(
    Array.from({ length: shards }, (_, shard) =>
      Promise.all([end(`INBOX_${shard}`), end(`JOURNAL_${shard}`)] as const),
    ),
  )
}

/** Shards of which a log ends below where it ended before. */
export interface Shortened {
  readonly inboxes: readonly number[]
  readonly journals: readonly number[]
}

export function shortened(before: Tails, after: Tails): Shortened {
  const shards = (log: 0 | 1) =>
    before.flatMap((ends, shard) => (after[shard]![log] < ends[log] ? [shard] : []))
  return { inboxes: shards(0), journals: shards(1) }
}

/**
 * Whether all who have to tell of these losses did: by shard, those of which their owner did, and those of which their
 * ingress did. The owner has to tell of its journal. Of an inbox its ingress may be the only one who knows: nobody else
 * had read what is lost.
 */
export function isTold(
  { inboxes, journals }: Shortened,
  owners: readonly number[],
  ingresses: readonly number[],
): boolean {
  return (
    journals.every((shard) => owners.includes(shard)) &&
    inboxes.every((shard) => owners.includes(shard) || ingresses.includes(shard))
  )
}

/** Waits until all is told, and stops all actors. `since`: Unix ms, of the cut. */
export async function stopLost(trial: ClusterTrial, losses: Shortened, since: number): Promise<Repair> {
  const began = performance.now()
  const lost = await eventually(
    async () => {
      const owned = await lostShards(trial)
      const missed = missedByIngresses(trial, since)
      return isTold(losses, owned, missed) && [...new Set([...owned, ...missed])]
    },
    { timeoutMs: NOTICE_MS, everyMs: 50 },
  )
  const noticeMs = Math.round(performance.now() - began)
  const ends = await Promise.all(trial.placesOf('actor').map((place) => place.end('SIGTERM')))
  if (ends.some((end) => end !== 0)) throw new Error(`the actors ended with ${ends.join(', ')}`)
  return { noticeMs, shards: lost }
}

/** Repairs every shard; how that ended. */
export function repairAll(trial: ClusterTrial): ReturnType<typeof runCommand> {
  return runCommand('cmd/repair/main.ts', ['--all', '--yes'], trial.cluster.environment)
}

/** Repairs every shard, and starts the actors again. */
export async function bringBack(trial: ClusterTrial): Promise<void> {
  const { code, stdout, stderr } = await repairAll(trial)
  if (code !== 0) throw new Error(`the repair ended with ${code}: ${stderr}${stdout}`)
  await Promise.all(trial.placesOf('actor').map((place) => place.start()))
}

/** Also of an actor that restarts and does not answer now: it has none. */
async function lostShards(trial: ClusterTrial): Promise<number[]> {
  const tables = trial.placesOf('actor').map((place) => place.shardTable().catch(() => ({ shards: [] })))
  const rows = (await Promise.all(tables)).flatMap(({ shards }) => shards)
  return [...new Set(rows.filter(({ state }) => state === 'lost').map(({ shard }) => shard))]
}

function missedByIngresses(trial: ClusterTrial, since: number): number[] {
  return trial.cluster.nodes
    .filter(({ role }) => role === 'ingress')
    .flatMap(({ service }) => service.output().split('\n'))
    .filter((line) => line.includes(LOST_WEBHOOKS))
    .map((line) => JSON.parse(line) as { time: string; shard: number })
    .filter(({ time }) => Date.parse(time) >= since)
    .map(({ shard }) => shard)
}
