/** A load beside a buffer that holds what it gets, until it is told to let go. */
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
