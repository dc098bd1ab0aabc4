/** The destination: a pod that keeps what it was sent (receiver.mjs). */
import { join } from 'node:path'
import { type Kube, kubectlOk } from '../kube/kube.ts'
import { eventually } from '../support/eventually.ts'

/** Of one request to the destination. */
export interface Delivered {
  key: string
  bodyHash: string
  messageIds: string[]
}

const here = import.meta.dirname

export async function startReceiver(cluster: Kube, namespace: string): Promise<void> {
  const program = `--from-file=${join(here, 'receiver.mjs')}`
  await kubectlOk(cluster, ['-n', namespace, 'create', 'configmap', 'receiver', program])
  await kubectlOk(cluster, ['-n', namespace, 'apply', '-f', join(here, 'receiver.yaml')])
  await kubectlOk(cluster, [
    ...['-n', namespace, 'wait', 'pod/receiver', '--for=condition=Ready', '--timeout=120s'],
  ])
}

/** All deliveries once every one of `messageIds` is among them. `url`: of the Service of the receiver. */
export function deliveredAll(url: string, messageIds: readonly string[]): Promise<Delivered[]> {
  return eventually(
    async () => {
      const delivered = (await (await fetch(url)).json()) as Delivered[]
      const arrived = new Set(delivered.flatMap((batch) => batch.messageIds))
      const missing = messageIds.filter((id) => !arrived.has(id))
      if (missing.length > 0)
        throw new Error(`${missing.length} of ${messageIds.length} are missing: ${missing.slice(0, 5)}`)
      return delivered
    },
    { timeoutMs: 120_000, everyMs: 500 },
  )
}

/** Keys that came with more than one body. */
export function twoBodies(delivered: readonly Delivered[]): string[] {
  const bodies = new Map(delivered.map(({ key, bodyHash }) => [key, bodyHash]))
  return delivered.filter(({ key, bodyHash }) => bodies.get(key) !== bodyHash).map(({ key }) => key)
}

/** Message ids that came more than once, in whatever batch. */
export function repeated(delivered: readonly Delivered[]): string[] {
  const seen = new Set<string>()
  return delivered.flatMap(({ messageIds }) => messageIds).filter((id) => seen.size === seen.add(id).size)
}
