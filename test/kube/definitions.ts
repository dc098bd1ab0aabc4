/** Definitions of other projects' resources, as those projects release them. */
import { join } from 'node:path'
import { eventually } from '../support/eventually.ts'
import { type Kube, kubectlOk, run } from './kube.ts'

const SETS = {
  gateway: { group: 'gateway.networking.k8s.io', kinds: ['httproutes', 'gateways'] },
  monitoring: { group: 'monitoring.coreos.com', kinds: ['servicemonitors', 'podmonitors'] },
}

/**
 * `gateway`: HTTPRoute and Gateway; `monitoring`: ServiceMonitor and PodMonitor. Rejects where the Go module with them is
 * neither in Go's cache nor to be had.
 */
export async function installDefinitions(
  cluster: Kube,
  ...sets: readonly (keyof typeof SETS)[]
): Promise<void> {
  for (const set of sets) {
    const { code, stdout, stderr } = await run(join(import.meta.dirname, 'definitions.sh'), [set])
    if (code !== 0) throw new Error(`there are no definitions for ${set}: ${stderr}`)
    const { group, kinds } = SETS[set]
    for (const kind of kinds) {
      // As they are too large for an annotation.
      const file = join(stdout.trim(), `${group}_${kind}.yaml`)
      await kubectlOk(cluster, ['apply', '--server-side', '-f', file])
      // At first there may be no conditions to wait for.
      const wait = ['wait', `crd/${kind}.${group}`, '--for=condition=Established', '--timeout=60s']
      await eventually(() => kubectlOk(cluster, wait), { timeoutMs: 60_000, everyMs: 100 })
    }
  }
}
