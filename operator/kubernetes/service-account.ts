/**
 * Access of a pod by its service account. Kubernetes tells the address in two variables and mounts the token, the
 * certificate and the namespace (https://kubernetes.io/docs/tasks/run-application/access-api-from-pod).
 */
import { existsSync, readFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'
import type { Clock } from '../../internal/runtime/clock.ts'
import type { ClusterAccess, Connection } from './access.ts'

const DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount'
/** The kubelet renews a token that has a fifth of its life left, which is at least two minutes. */
const READ_AGAIN_MS = 60_000
/** Of a connection, as client-go has it: a load balancer in between would forget one that is silent for longer. */
const KEEP_ALIVE_MS = 30_000

/** A kubeconfig goes before the service account, as it does in client-go. */
export function isInPod(env: NodeJS.ProcessEnv, directory = DIRECTORY): boolean {
  if (env.KUBECONFIG || (env.HOME && existsSync(join(env.HOME, '.kube', 'config')))) return false
  return Boolean(env.KUBERNETES_SERVICE_HOST) && existsSync(join(directory, 'token'))
}

/** Throws where `directory` lacks the token or the certificate. */
export function serviceAccountAccess(
  env: NodeJS.ProcessEnv,
  clock: Clock,
  directory = DIRECTORY,
): ClusterAccess {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '443' } = env
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`
  const file = (name: string) => readFileSync(join(directory, name), 'utf8').trim()
  const read = (): Connection => ({
    server,
    headers: { authorization: `Bearer ${file('token')}` },
    options: {
      type: 'agent',
      connect: { ca: file('ca.crt'), keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS },
    },
  })
  let known = read()
  let readAt = clock.monotonic()
  const current = () => {
    if (clock.monotonic() - readAt < READ_AGAIN_MS) return known
    readAt = clock.monotonic()
    try {
      known = read()
    } catch {} // The mount is being exchanged: the last token is still good, or the API server will say that it is not.
    return known
  }
  return { namespace: file('namespace'), connection: async () => current() }
}
