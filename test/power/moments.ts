/** Moments of a snapshot and a cut at which the power goes. */
import type { JetStreamManager } from 'nats'

import type { ClusterTrial } from '../faults/cluster-trial.ts'
import { published } from '../faults/row-acts.ts'
import { eventually } from '../support/eventually.ts'
import { readTails, type Tails } from './lost-tail.ts'

/** A snapshot was begun, or has its end, or a journal was cut. */
export const MOMENTS = ['cut', 'part', 'end'] as const
export type Moment = (typeof MOMENTS)[number]

const SUBJECTS = { part: 'archive.*.snapshot.*.*.0', end: 'archive.*.snapshot.*.*.end' }
/** A cut waits for the disk twice, 45 s each time, ms. */
const PATIENCE_MS = 180_000

/** Resolves right behind the next one, with the ends of the logs at that time. */
export async function atMoment(trial: ClusterTrial, moment: Moment, shards: number): Promise<Tails> {
  const connection = await trial.brokerConnection()
  try {
    const manager = await connection.jetstreamManager()
    if (moment === 'cut') await untilCut(manager, shards)
    else await published(connection, SUBJECTS[moment], PATIENCE_MS)
    return await readTails(manager, shards)
  } finally {
    await connection.close()
  }
}

async function untilCut(manager: JetStreamManager, shards: number): Promise<void> {
  const beginnings = async () => {
    const names = Array.from({ length: shards }, (_, shard) => `JOURNAL_${shard}`)
    const infos = await Promise.all(names.map((name) => manager.streams.info(name)))
    return infos.map(({ state }) => state.first_seq).join()
  }
  const before = await beginnings()
  await eventually(async () => (await beginnings()) !== before, { timeoutMs: PATIENCE_MS, everyMs: 50 })
}
