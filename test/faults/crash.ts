/**
 * Kills at seeded moments under load, restarts on the same data, and the judgement (fault matrix, rows 1, 2
 * and 7). Used by a short test and, for as long as one likes, by `main.ts`.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

import { eventually } from '../support/eventually.ts'
import type { Which } from '../support/nats-proxy.ts'
import { Load } from './load.ts'
import { createLoadBuffers, whileSwitching } from './load-buffers.ts'
import { committing, judging, nth, packing } from './strikes.ts'
import { Trial, type TrialOptions, within } from './trial.ts'

export interface CrashOptions extends Pick<TrialOptions, 'seed' | 'servers'> {
  readonly kills: number
  /** The load goes on until so many requests are accepted. */
  readonly items: number
  readonly writers?: number
  readonly pauseMs?: number
}

export interface CrashSummary {
  readonly sent: number
  readonly accepted: number
  readonly deliveries: number
  readonly dead: number
  readonly groups: number
  readonly kills: number
}

/** Rejects with every breach and the place of the history. */
export async function crashRun(options: CrashOptions): Promise<CrashSummary> {
  const { seed, servers, kills } = options
  const trial = await Trial.open({ label: `crash-${servers}`, seed, servers })
  try {
    await createLoadBuffers(trial)
    const load = startLoad(trial, options)
    await whileSwitching(trial, async () => {
      for (let kill = 0; kill < kills; kill++) await killOnce(trial, load)
      await eventually(() => load.accepted >= options.items, { timeoutMs: 180_000, everyMs: 50 })
      await within(load.stop(), 60_000, 'the writers do not end')
    })
    await trial.judge()
    return summary(trial, load)
  } finally {
    await trial.close()
  }
}

/** What a load needs: two buffers at least, `good` and `rejecting`. */
export type Loaded = Pick<Trial, 'sender' | 'random' | 'enable' | 'buffers'>

export function startLoad(
  trial: Loaded,
  given: { writers?: number; pauseMs?: number; patient?: boolean } = {},
): Load {
  const { writers = 24, pauseMs = 60, patient = false } = given
  const { sender, random } = trial
  const onDisabled = (bufferId: string) => trial.enable(bufferId)
  const load = new Load({
    sender,
    random,
    writers,
    pauseMs,
    patient,
    buffers: trial.buffers.ids,
    onDisabled,
  })
  load.start()
  return load
}

/** A kill under load; some starts after it are killed too. */
async function killOnce(trial: Trial, load: Load): Promise<void> {
  const { random } = trial
  const target = load.accepted + 20 + Math.floor(random() * 200)
  await eventually(() => load.accepted >= target, { timeoutMs: 60_000, everyMs: 2 })
  if (trial.own && random() < 0.7) await killAtMessage(trial)
  else await killNow(trial)
  if (random() < 0.25) {
    await trial.spawn()
    // How far a start gets in this time is up to the machine: any moment is a good one.
    await delay(random() * 1_200)
    trial.kill()
    await trial.gone()
  }
  await trial.start()
}

/** Half of the kills strike anywhere; the others where something is promised or decided. */
const CHOSEN: readonly Which[] = [
  packing,
  judging,
  ...(['seal', 'attempt', 'done', 'dead', 'drop'] as const).map(committing),
]

/** At one of the next messages to the broker, which then has it or has it not. */
async function killAtMessage(trial: Trial): Promise<void> {
  const { random } = trial
  const chosen = CHOSEN[Math.floor(random() * 2 * CHOSEN.length)]
  // Nobody answers a verdict.
  const when = chosen === judging || random() < 0.5 ? 'before' : 'after'
  const target = nth(1 + Math.floor(random() * (chosen ? 20 : 300)), chosen)
  // A message that waits for no answer has no "after".
  const which: Which = (frame) => (when === 'before' || frame.reply !== '') && target(frame)
  const meanwhile = () => delay(random() * 100)
  await trial.killAt(when, which, () => {}, meanwhile)
}

/** The service alone, its embedded servers left behind; or now and then all of them at once. */
async function killNow(trial: Trial): Promise<void> {
  const everything = !trial.own && trial.random() < 0.3
  const servers = everything ? serverPids(trial.installation.dataDir) : []
  trial.kill()
  for (const pid of servers) process.kill(pid, 'SIGKILL')
  await trial.gone()
}

/** As the servers themselves wrote them. */
function serverPids(dataDir: string): number[] {
  return ['nats/nats.pid', 'postgres/data/postmaster.pid'].map((file) =>
    Number.parseInt(readFileSync(join(dataDir, file), 'utf8'), 10),
  )
}

function summary(trial: Trial, load: Load): CrashSummary {
  const { sent, deliveries, dead, faults } = trial.history
  return {
    sent: sent.length,
    accepted: load.accepted,
    deliveries: deliveries.length,
    dead: dead.length,
    groups: new Set(sent.map(({ bufferId, groupKey }) => `${bufferId}/${groupKey}`)).size,
    kills: faults.filter(({ kind }) => kind === 'kill').length,
  }
}
