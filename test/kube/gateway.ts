/** The definitions of the Gateway API, as their project releases them. */
import { join } from 'node:path'
import { eventually } from '../support/eventually.ts'
import { type Kube, kubectlOk, run } from './kube.ts'

/** HTTPRoute and Gateway. Rejects where the Go module with them is neither in Go's cache nor to be had. */
export async function installGatewayApi(cluster: Kube): Promise<void> {
  const { code, stdout, stderr } = await run(join(import.meta.dirname, 'gateway.sh'), [])
  if (code !== 0) throw new Error(`there are no definitions of the Gateway API: ${stderr}`)
  for (const kind of ['httproutes', 'gateways']) {
    const file = join(stdout.trim(), `gateway.networking.k8s.io_${kind}.yaml`)
    // As they are too large for an annotation.
    await kubectlOk(cluster, ['apply', '--server-side', '-f', file])
    const name = `crd/${kind}.gateway.networking.k8s.io`
    // At first there may be no conditions to wait for.
    const wait = ['wait', name, '--for=condition=Established', '--timeout=60s']
    await eventually(() => kubectlOk(cluster, wait), { timeoutMs: 60_000, everyMs: 100 })
  }
}
