/**
 * How long a change of configuration takes to be followed by other nodes: from the answer of the PATCH at one process
 * to the first answer of an ingress, and the first delivery of an actor, that follow it.
 */
import { randomUUID } from 'node:crypto'
import type { Api } from '../test/support/api.ts'
import { Cluster } from '../test/support/cluster.ts'
import { startSink } from '../test/support/sink.ts'
import { quantile, table } from './figures.ts'

const HOUR_MS = 3_600_000
const LIMIT_MS = 30_000
/** A batch is due so long after its item; it was overdue for longer when the change makes it so. */
const DUE_MS = 100

/** Markdown. Each change is of a buffer of its own. */
export async function measureChanges(changes: number): Promise<string> {
  const cluster = await Cluster.create()
  const sink = await startSink()
  const adminApi = cluster.api(await cluster.start('admin'))
  const gate = cluster.api(await cluster.start('ingress'))
  await cluster.start('actor')
  const projectId = await adminApi.createProject()
  const buffers = Array.from({ length: changes }, () => randomUUID())
  for (const id of buffers) {
    const batch = { idleTimeoutMs: HOUR_MS, maxWaitFromFirstMs: HOUR_MS }
    await adminApi.createBuffer(projectId, id, { batch, delivery: { url: sink.url(`/${id}`) } })
    const { status, text } = await gate.ingest(projectId, id, { group: 'g' })
    if (status !== 202) throw new Error(text)
  }
  const [actor, ingress]: [number[], number[]] = [[], []]
  for (const id of buffers) {
    await adminApi.patchBuffer(id, { batch: { idleTimeoutMs: DUE_MS, maxWaitFromFirstMs: DUE_MS } })
    const changed = performance.now()
    await sink.waitForCount(1, `/${id}`, LIMIT_MS)
    actor.push(performance.now() - changed)
    ingress.push(await untilRefused(adminApi, gate, projectId, id))
  }
  await cluster.stop()
  await sink.close()
  return table(
    ['a change is followed by', 'changes', 'median ms', 'p99 ms', 'longest ms'],
    [row('an ingress (the next answer)', ingress), row('an actor (sealed and delivered)', actor)],
  )
}

/** Ms from the answer that disables the buffer to the first webhook that is refused for it. */
async function untilRefused(adminApi: Api, gate: Api, projectId: string, id: string): Promise<number> {
  await adminApi.patchBuffer(id, { enabled: false })
  const changed = performance.now()
  for (;;) {
    const { status } = await gate.ingest(projectId, id, { group: 'g' })
    const ms = performance.now() - changed
    if (status === 400) return ms
    if (ms > LIMIT_MS) throw new Error(`the change was not seen within ${LIMIT_MS} ms`)
  }
}

function row(name: string, ms: readonly number[]): string[] {
  const figure = (value: number) => value.toFixed(1)
  return [
    name,
    String(ms.length),
    figure(quantile(ms, 0.5)),
    figure(quantile(ms, 0.99)),
    figure(Math.max(...ms)),
  ]
}
