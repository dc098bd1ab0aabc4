import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import { type Kube, kubectlOk } from '../../kube/kube.ts'
import { tempFolder } from '../../support/temp-folders.ts'

/** What Kubernetes gives each pod of a service account: a folder, and the variables that tell where the API server is. */
export interface Mount {
  readonly directory: string
  readonly env: { readonly KUBERNETES_SERVICE_HOST: string; readonly KUBERNETES_SERVICE_PORT: string }
}

/** A mount of the service account `name`, with a token of the real API server. */
export async function mountServiceAccount(cluster: Kube, namespace: string, name: string): Promise<Mount> {
  const token = await kubectlOk(cluster, ['-n', namespace, 'create', 'token', name])
  const config = new KubeConfig()
  config.loadFromFile(cluster.kubeconfig)
  const { server, caData } = config.getCurrentCluster()!
  const directory = tempFolder('service-account')
  const write = (file: string, text: string | Buffer) => writeFileSync(join(directory, file), text)
  write('token', token.trim())
  write('ca.crt', Buffer.from(caData!, 'base64'))
  write('namespace', namespace)
  const { hostname, port } = new URL(server)
  return { directory, env: { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port } }
}

/** Variables of a program that `operator/pod.ts` starts; it finds no kubeconfig. */
export function podEnvironment({ directory, env }: Mount): Record<string, string> {
  return { ...env, KUBECONFIG: '', HOME: directory, TEST_SERVICE_ACCOUNT: directory }
}
