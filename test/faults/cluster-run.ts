/** Seeded faults of every kind under load on a cluster of processes, and the judgement. */
import { eventually } from '../support/eventually.ts'
import { perform } from './acts.ts'
import { ClusterTrial, type ClusterTrialOptions } from './cluster-trial.ts'
import { startLoad } from './crash.ts'
import { duplicatesByFault, timesOfFaults } from './duplicates.ts'
import type { Load } from './load.ts'
import { createLoadBuffers, whileSwitching } from './load-buffers.ts'
import { faultsOf, type Kind, LEAST_FAULTS, planOf, type Step } from './plan.ts'
import type { SelfEnd } from './self-ends.ts'
import { within } from './trial.ts'

/** Of a run. */
const LEAST_GROUPS = 100

export interface ClusterRunOptions extends Omit<ClusterTrialOptions, 'label'> {
  /** The load goes on until so many requests are accepted. */
  readonly items: number
  readonly steps: number
  readonly kinds?: readonly Kind[]
  readonly writers?: number
  readonly pauseMs?: number
}

export interface ClusterSummary {
  readonly seed: number
  /** What the plan did, in order; faults that began together are joined by `+`. */
  readonly faults: readonly string[]
  readonly accepted: number
  readonly groups: number
  readonly deliveries: number
  readonly dead: number
  /** How often there was which kind of fault. */
  readonly times: Readonly<Record<string, number>>
  /** Batches sent again after a 2xx, by the fault at that time. */
  readonly duplicates: Readonly<Record<string, number>>
  /** From the end of each step to a cluster in which every shard runs, ms. */
  readonly healMs: readonly number[]
  /** Nodes that ended by themselves, as is meant, and were started again. */
  readonly selfEnds: readonly SelfEnd[]
}

/** Rejects with every breach and the place of the history. */
export async function clusterRun(options: ClusterRunOptions): Promise<ClusterSummary> {
  const trial = await ClusterTrial.open({ ...options, label: 'cluster' })
  try {
    return await trial.keeping(() => runOn(trial, options))
  } finally {
    await trial.close()
  }
}

async function runOn(trial: ClusterTrial, options: ClusterRunOptions): Promise<ClusterSummary> {
  await createLoadBuffers(trial)
  const load = startLoad(trial, {
    writers: options.writers ?? 24,
    pauseMs: options.pauseMs ?? 120,
    patient: true,
  })
  const plan = planOf(options.seed, {
    places: trial.places.map(({ name }) => name),
    brokers: trial.brokers.map(({ name }) => name),
    proxied: trial.brokers.length === 1,
    steps: options.steps,
    ...(options.kinds && { kinds: options.kinds }),
  })
  const healMs: number[] = []
  await whileSwitching(trial, async () => {
    for (const step of plan) healMs.push(await doStep(trial, load, step))
    await eventually(() => load.accepted >= options.items, { timeoutMs: 180_000, everyMs: 50 })
    await within(load.stop(), 60_000, 'the writers do not end')
  })
  await trial.judge()
  // Nothing to excuse, to drop or to dead-letter: whatever held then says little.
  const missing = missingOf(trial, options.kinds ? 0 : LEAST_FAULTS - faultsOf(plan))
  if (missing.length > 0) throw trial.failure([{ rule: 'content', detail: missing }])
  return summary(trial, load, plan, healMs)
}

function missingOf({ history }: ClusterTrial, faults: number): string[] {
  const groups = new Set(history.sent.map(({ bufferId, groupKey }) => `${bufferId}/${groupKey}`)).size
  return [
    ...(faults > 0 ? [`${faults} faults`] : []),
    ...(groups < LEAST_GROUPS ? [`${LEAST_GROUPS - groups} groups`] : []),
    ...(history.dead.length === 0 ? ['dead letters'] : []),
    ...(history.sent.some(({ answer }) => answer?.duplicate) ? [] : ['duplicates that were told']),
    // Without them no fault could be tied to an owner, and every one would be an excuse.
    ...(history.claims.length === 0 ? ['claims'] : []),
    ...(history.changes.some(({ terms }) => !terms.enabled) ? [] : ['a disabled buffer']),
  ]
}

/** How long the cluster took to heal, ms. */
async function doStep(trial: ClusterTrial, load: Load, { acts, afterItems }: Step): Promise<number> {
  const target = load.accepted + afterItems
  await eventually(() => load.accepted >= target, { timeoutMs: 60_000, everyMs: 5 })
  const faults = await Promise.all(acts.map((act) => perform(trial, act)))
  const lifted = performance.now()
  await trial.untilHealed().catch((error: unknown) => {
    throw trial.failure([{ rule: 'heal', detail: { acts, error: String(error) } }])
  })
  for (const fault of faults) if (fault) fault.to = Date.now()
  return Math.round(performance.now() - lifted)
}

function summary(
  trial: ClusterTrial,
  load: Load,
  plan: readonly Step[],
  healMs: readonly number[],
): ClusterSummary {
  const { sent, deliveries, dead } = trial.history
  return {
    seed: trial.options.seed,
    faults: plan.map(({ acts }) =>
      acts.map(({ kind, target, holdMs }) => `${kind} ${target} ${holdMs}`).join('+'),
    ),
    accepted: load.accepted,
    groups: new Set(sent.map(({ bufferId, groupKey }) => `${bufferId}/${groupKey}`)).size,
    deliveries: deliveries.length,
    dead: dead.length,
    healMs,
    times: timesOfFaults(trial.history.faults),
    duplicates: duplicatesByFault(trial.history),
    selfEnds: trial.selfEnds,
  }
}
