/** What the plays of several nodes share. */
import type { NatsConnection } from 'nats'

import { eventually } from '../support/eventually.ts'
import type { ClusterTrial } from './cluster-trial.ts'
import type { Load } from './load.ts'

export const WAIT = { timeoutMs: 60_000, everyMs: 20 }

export interface RowContext {
  readonly trial: ClusterTrial
  readonly load: Load
}

export async function accepts(load: Load, items: number): Promise<void> {
  const target = load.accepted + items
  await eventually(() => load.accepted >= target, WAIT)
}

/** Name of the server that leads this stream; false: none does. */
export async function leaderOf(trial: ClusterTrial, stream: string): Promise<string | false> {
  const connection = await trial.brokerConnection()
  try {
    const manager = await connection.jetstreamManager()
    return (await manager.streams.info(stream)).cluster?.leader ?? false
  } finally {
    await connection.close()
  }
}

/** Resolves when somebody publishes to such a subject. */
export async function published(
  connection: NatsConnection,
  subject: string,
  timeoutMs: number,
): Promise<void> {
  for await (const _ of connection.subscribe(subject, { max: 1, timeout: timeoutMs })) return
}
