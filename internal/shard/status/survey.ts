/**
 * What the logs and the leases tell of each shard to somebody who is no node of the installation (`npm run
 * shards`), and the one thing that he may do to a shard from outside: make its owner let go.
 */

import type { Clock } from '../../runtime/clock.ts'
import type { Broker, LogState } from '../broker.ts'
import { appendEpoch, proofSubject } from '../claim/takeover.ts'
import { appendBehind } from '../journal/append-behind.ts'
import { decodeCommit, encodeCommit, encodeRecord } from '../journal/codec.ts'
import type { Lease } from '../ownership/membership.ts'
import { FencedError } from '../ports.ts'

export interface SurveyedShard {
  readonly shard: number
  readonly inbox: LogState
  readonly journal: LogState
  readonly archive: LogState
  /** By the last commit of the journal; null: nobody ever claimed it. */
  readonly owner: {
    readonly boot: string
    readonly epoch: number
    /** It has let go: anybody may claim the shard. */
    readonly released: boolean
    /** When the broker stored that commit, Unix ms. */
    readonly at: number
    /** Its lease, when it stands; undefined: the process is gone, or about to be known as gone. */
    readonly lease: Lease | undefined
  } | null
  /** Nodes whose leases list the shard, owner or not. */
  readonly listedBy: readonly Lease[]
}

/** Rejects when the broker does not answer. */
export function surveyShards(
  broker: Pick<Broker, 'inbox' | 'journal' | 'archive'>,
  shards: number,
  leases: readonly Lease[],
): Promise<SurveyedShard[]> {
  const numbers = Array.from({ length: shards }, (_, shard) => shard)
  return Promise.all(numbers.map((shard) => surveyShard(broker, shard, leases)))
}

export async function surveyShard(
  broker: Pick<Broker, 'inbox' | 'journal' | 'archive'>,
  shard: number,
  leases: readonly Lease[],
): Promise<SurveyedShard> {
  const [inbox, journal, archive, last] = await Promise.all([
    broker.inbox(shard).state(),
    broker.journal(shard).state(),
    broker.archive(shard).state(),
    broker.journal(shard).last(),
  ])
  const listedBy = leases.filter((lease) => lease.shards.includes(shard))
  const surveyed = { shard, inbox, journal, archive, listedBy }
  if (last === undefined) return { ...surveyed, owner: null }
  const { boot, epoch, records } = decodeCommit(last.data)
  const owner = {
    boot,
    // The claim itself carries none: its sequence is the epoch.
    epoch: epoch || last.seq,
    released: records.at(-1)?.type === 'release',
    at: last.at,
    lease: leases.find((lease) => lease.boot === boot),
  }
  return { ...surveyed, owner }
}

/**
 * Makes the owner of a shard let go: a claim of one's own, which fences it, and its release. Who should run the
 * shard by the plan of the nodes claims it next, which may be the same node again. What was being sent may be
 * sent once more, under its key. Rejects with FencedError when a node claimed it in between: then it is anew in
 * somebody's hands, too.
 */
export async function forceRelease(
  { journal, publish }: Pick<Broker, 'journal' | 'publish'>,
  shard: number,
  /** UUID of this release. */
  boot: string,
  clock: Clock,
): Promise<{ epoch: number }> {
  const log = journal(shard)
  const epoch = await appendEpoch(log, { boot, claim: 1, clock, stopped: () => false })
  const header = { boot, epoch, at: clock.now(), highWater: null }
  const data = encodeCommit(header, [encodeRecord({ type: 'release', batches: [] })])
  const isStored = await appendBehind(log, clock, data, { msgId: `${epoch}:1`, seq: epoch + 1 })
  if (!isStored) throw new FencedError('a node claimed the shard meanwhile')
  publish(proofSubject(shard), Buffer.alloc(0))
  return { epoch }
}
