/** Does what a plan says, and undoes it. */
import { setTimeout as delay } from 'node:timers/promises'

import { eventually } from '../support/eventually.ts'
import type { TcpProxy } from '../support/tcp-proxy.ts'
import { hindersStop } from './causes.ts'
import type { ClusterTrial } from './cluster-trial.ts'
import type { Fault } from './history.ts'
import type { NodePlace } from './node-place.ts'
import { type Act, isFault } from './plan.ts'

/** Of a slow network, ms in each direction. */
const LATENCY_MS = 150

/** Resolves when the fault is lifted; its span in the history is not over before the cluster is healed. */
export async function perform(trial: ClusterTrial, act: Act): Promise<Fault | null> {
  const { kind, target, holdMs } = act
  const [where, what] = kind.split('-') as [string, string | undefined]
  switch (where) {
    case 'kill':
      return killed(trial, target, holdMs)
    case 'freeze':
      return frozen(trial, target, holdMs)
    case 'restart':
      return what === 'actors' ? allActorsRestarted(trial) : restarted(trial, target)
    case 'join':
      return joined(trial, act)
    case 'broker':
      return what === 'freeze' ? brokerFrozen(trial, target, holdMs) : brokerKilled(trial, target)
    case 'destination':
      return networkFault(trial, act, trial.destinationProxy, what!)
    default: {
      const place = trial.place(target)
      const proxy = where === 'nats' ? place.nats! : place.postgres
      return networkFault(trial, act, proxy, what!)
    }
  }
}

async function killed(trial: ClusterTrial, target: string, holdMs: number): Promise<Fault> {
  const place = trial.place(target)
  const fault = trial.beginFault(`kill ${target}`)
  await place.end('SIGKILL')
  await delay(holdMs / 3)
  await place.start()
  return fault
}

async function frozen(trial: ClusterTrial, target: string, holdMs: number): Promise<Fault> {
  const place = trial.place(target)
  await place.running()
  // Only owners have deliveries under way.
  const fault = trial.beginFault(`freeze ${target}`, place.role === 'actor')
  place.freeze()
  await delay(holdMs)
  place.thaw()
  release(fault)
  return fault
}

/** In good order: no fault, nothing is excused. */
async function restarted(trial: ClusterTrial, target: string): Promise<null> {
  const place = trial.place(target)
  await stopped(trial, place)
  await place.start()
  return null
}

/** All are told to stop at once, as by whoever shuts an installation down. */
async function allActorsRestarted(trial: ClusterTrial): Promise<null> {
  const places = trial.placesOf('actor').filter(({ wanted }) => wanted)
  const ends = await Promise.all(places.map((place) => place.end('SIGTERM')))
  const bad = ends.findIndex((end) => end !== 0)
  if (bad >= 0) throw trial.failure([{ rule: 'exit', detail: { name: places[bad]!.name, end: ends[bad] } }])
  await Promise.all(places.map((place) => place.start()))
  return null
}

/** A node more, which leaves again. */
async function joined(trial: ClusterTrial, act: Act): Promise<Fault | null> {
  const { holdMs } = act
  const place = await trial.addPlace('actor')
  await place.start()
  await delay(holdMs)
  if (isFault(act)) {
    const fault = trial.beginFault(`kill ${place.name}`)
    await place.end('SIGKILL')
    return fault
  }
  await stopped(trial, place)
  return null
}

async function stopped(trial: ClusterTrial, place: NodePlace): Promise<void> {
  const began = Date.now()
  const end = await place.end('SIGTERM')
  const tookMs = Date.now() - began
  const hindered = trial.history.faults.some((fault) => fault.to > began && hindersStop(fault, tookMs))
  if (end !== 0 && !(hindered && end === 1))
    throw trial.failure([{ rule: 'exit', detail: { name: place.name, end } }])
}

async function brokerFrozen(trial: ClusterTrial, target: string, holdMs: number): Promise<Fault> {
  const broker = trial.brokers.find(({ name }) => name === target)!
  const fault = trial.beginFault(`freeze ${target}`)
  broker.kill('SIGSTOP')
  await delay(holdMs)
  broker.kill('SIGCONT')
  return fault
}

async function brokerKilled(trial: ClusterTrial, target: string): Promise<Fault> {
  const broker = trial.brokers.find(({ name }) => name === target)!
  const fault = trial.beginFault(`kill ${target}`)
  broker.kill('SIGKILL')
  await eventually(() => !broker.running)
  await broker.restart()
  return fault
}

async function networkFault(trial: ClusterTrial, act: Act, proxy: TcpProxy, what: string): Promise<Fault> {
  const { kind, target, holdMs } = act
  const fault = trial.beginFault(`${kind} ${target}`, kind === 'destination-blackhole')
  if (what === 'reset') proxy.reset()
  else if (what === 'latency') proxy.delay(LATENCY_MS)
  else if (what === 'blackhole') proxy.blackhole()
  else proxy.silence(what as 'up' | 'down')
  await delay(what === 'reset' ? 0 : holdMs)
  proxy.heal()
  release(fault)
  return fault
}

/** What it held back goes out now. */
export function release(fault: Fault): void {
  if (fault.heldUntil !== undefined) fault.heldUntil = Date.now()
}
