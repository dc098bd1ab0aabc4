/**
 * One of three NATS servers is cut off from its peers while a snapshot is written, and while a shard is claimed (fault matrix, row 26).
 * It takes itself for the leader for some 15 s, and clients that it has still reach it.
 */
import { setTimeout as delay } from 'node:timers/promises'

import { eventually } from '../support/eventually.ts'
import type { ClusterTrial } from './cluster-trial.ts'
import type { PartedBrokers } from './parted-brokers.ts'
import { accepts, leaderOf, published, type RowContext, WAIT } from './row-acts.ts'

const SHARD = 0
/** Longer than a server without its peers takes itself for the leader, ms. */
const CUT_OFF_MS = 20_000
const FIRST_PARTS = `archive.${SHARD}.snapshot.*.*.0`
const ENDS = `archive.${SHARD}.snapshot.*.*.end`

export async function serverCutOff({ trial, load }: RowContext, brokers: PartedBrokers): Promise<void> {
  for (const stream of [`ARCHIVE_${SHARD}`, `JOURNAL_${SHARD}`]) {
    await accepts(load, 200)
    await duringSnapshot(trial, brokers, stream)
    await untilPublished(trial, ENDS)
    await duringClaim(trial, brokers, stream)
    await untilPublished(trial, ENDS)
  }
}

async function duringSnapshot(trial: ClusterTrial, brokers: PartedBrokers, stream: string): Promise<void> {
  const leader = await eventually(() => leaderOf(trial, stream), WAIT)
  await untilPublished(trial, FIRST_PARTS)
  await whileCutOff(trial, brokers, leader)
}

/** The owner is killed, and the claim of another one finds the server cut off. */
async function duringClaim(trial: ClusterTrial, brokers: PartedBrokers, stream: string): Promise<void> {
  const leader = await eventually(() => leaderOf(trial, stream), WAIT)
  const owner = await trial.ownerOf(SHARD)
  const fault = trial.beginFault(`kill ${owner.name}`)
  await owner.end('SIGKILL')
  await whileCutOff(trial, brokers, leader, () => owner.start())
  fault.to = Date.now()
}

async function whileCutOff(
  trial: ClusterTrial,
  brokers: PartedBrokers,
  server: string,
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<void> {
  const fault = trial.beginFault(`nats-blackhole ${server}`)
  brokers.cutOff(server)
  const running = meanwhile()
  await delay(CUT_OFF_MS)
  brokers.heal()
  await running
  await trial.untilHealed()
  fault.to = Date.now()
}

/** Resolves when somebody publishes to such a subject. */
async function untilPublished(trial: ClusterTrial, subject: string): Promise<void> {
  const connection = await trial.brokerConnection()
  try {
    await published(connection, subject, WAIT.timeoutMs)
  } finally {
    await connection.close()
  }
}
