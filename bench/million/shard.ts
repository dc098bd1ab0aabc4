/** The one shard under measurement: its logs at the broker, its actor's memory, what it says of itself. */
import { readFileSync } from 'node:fs'
import type { Broker } from '../../internal/shard/broker.ts'
import type { ClusterNode } from '../../test/support/cluster.ts'
import { eventually } from '../../test/support/eventually.ts'
import { readMetrics } from '../../test/support/metrics.ts'

const MINUTES_MS = 900_000

export interface LogBytes {
  inbox: number
  journal: number
}

export async function logBytes(broker: Broker): Promise<LogBytes> {
  const ask = () => Promise.all([broker.inbox(0).state(), broker.journal(0).state()])
  const [inbox, journal] = await eventually(ask, { timeoutMs: MINUTES_MS })
  return { inbox: inbox.bytes, journal: journal.bytes }
}

/** Items that the actor holds. */
async function buffered({ opsUrl }: ClusterNode): Promise<number> {
  return readMetrics(await (await fetch(`${opsUrl}/metrics`)).text(), 'penstock_buffered_items')
}

/** Rejects with the actor's last words when it ends before, or takes too long. */
export async function untilBuffered(actor: ClusterNode, holds: (items: number) => boolean): Promise<void> {
  let items = Number.NaN
  const ask = async () => {
    items = await buffered(actor)
    return holds(items)
  }
  const ended = actor.service.exited().then((code) => Promise.reject(new Error(`it ended with ${code}`)))
  try {
    await Promise.race([eventually(ask, { timeoutMs: MINUTES_MS, everyMs: 500 }), ended])
  } catch (cause) {
    const words = actor.service.output().slice(-2_000)
    throw new Error(`the actor holds ${items} items; its last words:\n${words}`, { cause })
  }
}

/** Resident memory of the process in bytes: now, and the most so far. */
export function memoryOf({ service }: ClusterNode): { now: number; peak: number } {
  const status = readFileSync(`/proc/${service.child.pid}/status`, 'utf8')
  const kb = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1])
  return { now: kb('VmRSS') * 1024, peak: kb('VmHWM') * 1024 }
}

/** Ms from the claim until everything that was held has its place. */
export async function replayed({ service }: ClusterNode): Promise<number> {
  const isServing = ({ msg, state }: Record<string, unknown>) => msg === 'ownership' && state === 'running'
  const event = await eventually(() => service.events.find(isServing) ?? false, { timeoutMs: MINUTES_MS })
  return Number(event.replayMs)
}
