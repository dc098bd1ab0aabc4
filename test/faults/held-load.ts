/** A load beside a buffer that holds what it gets, until it is told to let go: its snapshots are never empty. */
import { SNAPSHOTS, snapshotsOf } from '../../internal/shard/archive/snapshot-subjects.ts'
import type { Archive } from '../../internal/shard/broker.ts'
import { eventually } from '../support/eventually.ts'
import { startLoad } from './crash.ts'
import type { Load } from './load.ts'
import type { Trial } from './trial.ts'

const PATIENT = { maxItems: 10_000, idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 }
const DUE = { maxItems: 20, idleTimeoutMs: 100, maxWaitFromFirstMs: 100 }

/** Makes the buffers `good`, `rejecting` and `held`, and resolves once the load is accepted. */
export async function startLoadBesideHeld(trial: Trial): Promise<Load> {
  for (const bufferId of ['good', 'rejecting', 'held']) await trial.createBuffer(bufferId)
  await trial.patchBuffer('held', { batch: PATIENT })
  const load = startLoad(trial, { writers: 8, pauseMs: 40 })
  await eventually(() => load.accepted > 50)
  return load
}

export async function letGo(trial: Trial): Promise<void> {
  await trial.patchBuffer('held', { batch: DUE })
}

/** Resolves once items are accepted and delivered that were not when it was called. */
export async function goesOn(trial: Trial, load: Load): Promise<void> {
  const [{ accepted }, { length }] = [load, trial.history.deliveries]
  await eventually(() => load.accepted > accepted + 100)
  await eventually(() => trial.history.deliveries.length > length + 40)
}

/** Sequence of the newest complete snapshot; rejects when there is none. */
export async function newestIn(archive: Archive): Promise<number> {
  const { subjects } = await archive.list(SNAPSHOTS)
  const newest = snapshotsOf(subjects).find(({ hasEnd }) => hasEnd)
  if (!newest) throw new Error('there is no snapshot')
  return newest.name.seq
}
