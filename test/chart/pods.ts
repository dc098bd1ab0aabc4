/** What the pods of a chart would run, where nodes are simulated. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Kube, kubectlOk } from '../kube/kube.ts'
import { freshDatabase, natsAccount } from '../support/servers.ts'
import { type Service, startService, untilHealthy } from '../support/service.ts'
import { tempFolder } from '../support/temp-folders.ts'

/** The service of the local values, at `url`, as far as it matters here. */
export async function playService(url: string, ownerKey: string): Promise<Service> {
  const service = await startService({
    dataDir: tempFolder('data'),
    env: {
      PENSTOCK_PORT: new URL(url).port,
      PENSTOCK_SHARDS: '2',
      PENSTOCK_NATS_URL: (await natsAccount()).url,
      PENSTOCK_DATABASE_URL: await freshDatabase(),
      PENSTOCK_OWNER_KEYS: `local=${ownerKey}`,
    },
  })
  await untilHealthy(service)
  return service
}

/** The operator of a release, as its account; it watches all namespaces unless `env` says otherwise. */
export async function playOperator(
  cluster: Kube,
  of: { namespace: string; release: string; url: string; env?: Record<string, string> },
): Promise<Service> {
  const account = `${of.release}-operator`
  const token = await kubectlOk(cluster, ['-n', of.namespace, 'create', 'token', account])
  const kubeconfig = join(tempFolder('account'), 'kubeconfig')
  const ours = readFileSync(cluster.kubeconfig, 'utf8')
  writeFileSync(kubeconfig, ours.replace(/token: "[^"]+"/, `token: "${token.trim()}"`))
  return startService({
    dataDir: tempFolder('operator'),
    program: 'cmd/operator/main.ts',
    env: {
      KUBECONFIG: kubeconfig,
      PENSTOCK_ADMIN_URL: of.url,
      PENSTOCK_LEASE_NAMESPACE: of.namespace,
      PENSTOCK_LEASE_NAME: account,
      ...of.env,
    },
  })
}

/** Simulated nodes forward no ports: a kubectl that only waits then, and is the real one in everything else. */
export function forwarding(cluster: Kube): string {
  const folder = join(tempFolder('bin'), 'bin')
  mkdirSync(folder)
  const script = `#!/bin/sh
case " $* " in *' port-forward '*) exec sleep 3600 ;; esac
exec ${join(cluster.bin, 'kubectl')} "$@"
`
  writeFileSync(join(folder, 'kubectl'), script, { mode: 0o755 })
  return folder
}
