/** One installation under load, the power of its servers cut again and again, and the judgement. */
import { setTimeout as delay } from 'node:timers/promises'
import { check } from '../faults/checker.ts'
import { ClusterTrial } from '../faults/cluster-trial.ts'
import { startLoad } from '../faults/crash.ts'
import { duplicatesByFault } from '../faults/duplicates.ts'
import type { History } from '../faults/history.ts'
import type { Load } from '../faults/load.ts'
import { within } from '../faults/trial.ts'
import { eventually } from '../support/eventually.ts'
import type { Guest } from './guest.ts'
import {
  checkRepaired,
  cutOf,
  lostOf,
  onHostClock,
  type PowerCut,
  type Withdrawn,
  withdraw,
} from './judgement.ts'
import { POWER_KINDS, type PowerKind } from './kinds.ts'
import { bringBack, type Repair, readTails, repairAll, shortened, stopLost, type Tails } from './lost-tail.ts'
import { atMoment, MOMENTS, type Moment } from './moments.ts'
import { giveLead } from './nats-machine.ts'
import { openStores, type PowerStores } from './stores.ts'

const SHARDS = 2
/** Few: a machine that is emulated takes some tens of milliseconds for a sync. */
const WRITERS = 6
const PAUSE_MS = 250
/** For whatever waits for a machine that is emulated, ms. */
const PATIENCE_MS = 180_000
/** Cuts of a member of a cluster before which the lead of the streams goes to it. */
const TO_LEAD = 0.5
/** Repairs during which the power goes again. */
const REPAIRS_CUT = 0.5
/** A repair takes about so long: it waits twice for the disk, ms. */
const REPAIR_MS = 100_000
/** With an interval the kernel of the guest has written the settings of the logs by then, ms. NATS does not sync them. */
const SETTINGS_MS = 45_000
/** Items accepted before a cut. */
const LEAST_ITEMS = 20
const MORE_ITEMS = 40

export interface PowerRunOptions {
  readonly seed: number
  /** Of `POWER_KINDS`. */
  readonly kind: string
  readonly cuts: number
  readonly guest: Guest
}

export interface PowerSummary {
  readonly cuts: number
  readonly accepted: number
  readonly deliveries: number
  readonly dead: number
  /** Sectors that were written and not flushed at the cuts, and those of them that chance took. */
  readonly unflushed: number
  readonly torn: number
  /** Cuts after which a log of the broker ended below where it had ended. */
  readonly shortened: number
  /** Cuts during the repairs that followed. */
  readonly repairsCut: number
  /** Items that were accepted and never came out, and the age of the oldest of them at its cut, ms. */
  readonly lost: number
  readonly oldestLostMs: number
  /** From a broker that is back until all who have to tell of its losses did, ms, for each repair. */
  readonly noticeMs: readonly number[]
  /** From the cut to servers that answer, and from there to an installation that is whole, ms, for each cut. */
  readonly downMs: readonly number[]
  readonly healMs: readonly number[]
  /** Batches sent again after a 2xx. */
  readonly duplicates: number
}

interface Cut {
  readonly unflushed: number
  readonly torn: number
  readonly withdrawn: readonly Withdrawn[]
  readonly repair: Repair | null
  readonly repairsCut: number
  readonly downMs: number
  readonly healMs: number
}

interface Run {
  readonly kind: PowerKind
  readonly stores: PowerStores
  readonly trial: ClusterTrial
  readonly load: Load
}

/** Rejects with every breach and the place of the history. */
export async function powerRun({ seed, kind: name, cuts, guest }: PowerRunOptions): Promise<PowerSummary> {
  const kind = POWER_KINDS[name]!
  const stores = await openStores(guest, kind)
  const trial = await openTrial(stores, kind, name, seed)
  try {
    return await trial.keeping(() => runOn({ kind, stores, trial }, cuts))
  } finally {
    await trial.close()
  }
}

async function openTrial(
  { servers }: PowerStores,
  { archives }: PowerKind,
  name: string,
  seed: number,
): Promise<ClusterTrial> {
  const programs = archives ? { actor: 'test/faults/keeping-actor.ts' } : {}
  const size = { ingresses: 1, actors: 2, shards: SHARDS, programs }
  const options = { label: `power-${name}`, seed, servers, patienceMs: PATIENCE_MS, ...size }
  return ClusterTrial.open(options).catch(async (error: unknown) => {
    await servers.broker.stop()
    throw error
  })
}

async function runOn(on: Omit<Run, 'load'>, count: number): Promise<PowerSummary> {
  const { kind, trial } = on
  for (const bufferId of ['good', 'rejecting']) await trial.createBuffer(bufferId)
  if (kind.losesMs > 0) await delay(SETTINGS_MS)
  const load = startLoad(trial, { writers: WRITERS, pauseMs: PAUSE_MS })
  const run = { ...on, load }
  const cuts: Cut[] = []
  const moments = kind.archives ? Math.floor(trial.random() * MOMENTS.length) : 0
  for (let cut = 0; cut < count; cut++) {
    await accepted(run)
    cuts.push(await cutOnce(run, MOMENTS[(moments + cut) % MOMENTS.length]!))
  }
  await accepted(run)
  await within(load.stop(), PATIENCE_MS, 'the writers do not end')
  const withdrawn = cuts.flatMap((cut) => cut.withdrawn)
  const rules = kind.losesMs === 0 ? check : (history: History) => checkRepaired(history, withdrawn)
  await trial.judge(kind.server === 'nats' ? (history) => rules(onHostClock(history)) : rules)
  if (kind.losesMs > 0 && cuts.every(({ repair }) => repair === null))
    throw trial.failure([{ rule: 'content', detail: 'no cut took anything' }])
  if (kind.cache === 'torn' && kind.sync !== 'always' && cuts.every(({ unflushed }) => unflushed === 0))
    throw trial.failure([{ rule: 'content', detail: 'no cut found anything in the cache of the disk' }])
  return summary(run, cuts)
}

async function accepted({ trial, load }: Run): Promise<void> {
  const target = load.accepted + LEAST_ITEMS + Math.floor(trial.random() * MORE_ITEMS)
  await eventually(() => load.accepted >= target, { timeoutMs: PATIENCE_MS, everyMs: 5 })
  // Not always right behind an answer.
  await delay(trial.random() * 100)
}

/** `moment`: where the kind is about archives. */
async function cutOnce(run: Run, moment: Moment): Promise<Cut> {
  const { kind, stores, trial } = run
  if (stores.member !== null && trial.random() < TO_LEAD) await lead(trial, stores.member)
  const before = kind.archives ? await atMoment(trial, moment, SHARDS) : await tailsOf(run)
  const [began, since] = [performance.now(), Date.now()]
  const first = await cutPower(run)
  const back = performance.now()
  const repair = await stopAfter(run, before, since)
  const cuts = repair ? [first, ...(await repaired(run))] : [first]
  const withdrawn = kind.losesMs === 0 ? [] : cuts.flatMap(({ fault }) => withdraw(trial.history, fault))
  await trial.untilHealed()
  for (const { fault } of cuts) fault.to = Date.now()
  const [downMs, healMs] = [Math.round(back - began), Math.round(performance.now() - back)]
  const [unflushed, torn] = [sum(cuts, (cut) => cut.unflushed), sum(cuts, (cut) => cut.torn)]
  return { unflushed, torn, withdrawn, repair, repairsCut: cuts.length - 1, downMs, healMs }
}

interface PowerLoss {
  readonly fault: PowerCut
  readonly unflushed: number
  readonly torn: number
}

/** Resolves when the servers answer again. */
async function cutPower({ kind, stores, trial }: Run): Promise<PowerLoss> {
  const { unflushed, lost: torn } = await stores.machine.cut(trial.random)
  const fault = cutOf(`${kind.server}-cut`, Date.now(), kind.losesMs)
  trial.history.faults.push(fault)
  stores.machine.start()
  await stores.untilReady()
  return { fault, unflushed, torn }
}

/** Brings the shards back; the cuts that came in between. */
async function repaired(run: Run): Promise<PowerLoss[]> {
  const { trial } = run
  const cuts = trial.random() < REPAIRS_CUT ? [await cutRepair(run)] : []
  await bringBack(trial)
  return cuts
}

/** The power goes at any time of a repair, or right behind it. */
async function cutRepair(run: Run): Promise<PowerLoss> {
  const { trial } = run
  const repair = repairAll(trial)
  await delay(trial.random() * REPAIR_MS)
  const cut = await cutPower(run)
  await within(repair, PATIENCE_MS, 'the repair does not end')
  return cut
}

/** null: the logs end where they ended, or above. */
async function stopAfter(run: Run, before: Tails | null, since: number): Promise<Repair | null> {
  const { kind, trial } = run
  const after = await tailsOf(run)
  if (!before || !after) return null
  const lost = shortened(before, after)
  if (lost.inboxes.length + lost.journals.length === 0) return null
  if (kind.losesMs === 0) throw trial.failure([{ rule: 'tail', detail: { before, after } }])
  return stopLost(trial, lost, since)
}

async function lead(trial: ClusterTrial, server: string): Promise<void> {
  const connection = await trial.brokerConnection()
  try {
    await giveLead(connection, await connection.jetstreamManager(), server)
  } finally {
    await connection.close()
  }
}

/** null: the cut of a database takes nothing from them. */
async function tailsOf({ kind, trial }: Run): Promise<Tails | null> {
  if (kind.server !== 'nats') return null
  return eventually(
    async () => {
      const connection = await trial.brokerConnection()
      try {
        return await readTails(await connection.jetstreamManager(), SHARDS)
      } finally {
        await connection.close()
      }
    },
    { timeoutMs: PATIENCE_MS, everyMs: 100 },
  )
}

function summary({ trial, load }: Run, cuts: readonly Cut[]): PowerSummary {
  const { deliveries, dead } = trial.history
  const lost = lostOf(
    trial.history,
    cuts.flatMap(({ withdrawn }) => withdrawn),
  )
  return {
    cuts: cuts.length,
    accepted: load.accepted,
    deliveries: deliveries.length,
    dead: dead.length,
    unflushed: sum(cuts, ({ unflushed }) => unflushed),
    torn: sum(cuts, ({ torn }) => torn),
    shortened: cuts.filter(({ repair }) => repair !== null).length,
    repairsCut: sum(cuts, ({ repairsCut }) => repairsCut),
    lost: lost.length,
    oldestLostMs: Math.max(0, ...lost.map(({ ageMs }) => ageMs)),
    noticeMs: cuts.flatMap(({ repair }) => (repair ? [repair.noticeMs] : [])),
    downMs: cuts.map(({ downMs }) => downMs),
    healMs: cuts.map(({ healMs }) => healMs),
    duplicates: Object.values(duplicatesByFault(trial.history)).reduce((all, count) => all + count, 0),
  }
}

function sum<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((total, value) => total + of(value), 0)
}
