/**
 * Access by a kubeconfig, as kubectl has it: read by @kubernetes/client-node, with its certificates, tokens and plugins.
 * That package takes some 35 MB once it is loaded, so nobody imports this file before it is needed.
 */
import type { AgentOptions, RequestOptions } from 'node:https'
import { KubeConfig } from '@kubernetes/client-node'
import type { ClusterAccess, Connection } from './access.ts'

/** What the loader makes up where it finds nothing at all. */
const NOWHERE = 'http://localhost:8080'

/** From KUBECONFIG, or the user's own file. Throws with what is wrong with it. */
export function readKubeconfig(): ClusterAccess {
  const config = new KubeConfig()
  config.loadFromDefault()
  const problem = problemOf(config)
  if (problem !== undefined) throw new Error(problem)
  return kubeconfigAccess(config)
}

export function kubeconfigAccess(config: KubeConfig): ClusterAccess {
  return {
    namespace: config.getContextObject(config.getCurrentContext())?.namespace,
    connection: () => connectionOf(config),
  }
}

async function connectionOf(config: KubeConfig): Promise<Connection> {
  const cluster = config.getCurrentCluster()
  if (!cluster) throw new Error('the kubeconfig names no current cluster')
  const credentials: RequestOptions = {}
  await config.applyToHTTPSOptions(credentials)
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(credentials.headers ?? {})) headers[name] = String(value)
  if (credentials.auth) headers.authorization = `Basic ${Buffer.from(credentials.auth).toString('base64')}`
  const options = config.createDispatcherOptions(cluster, credentials as AgentOptions)
  return { server: cluster.server, headers, options }
}

/** The loader takes any file for good; without a cluster every request would fail for good. */
function problemOf(config: KubeConfig): string | undefined {
  const name = config.getCurrentContext()
  if (!name) return 'has no current context'
  const context = config.getContextObject(name)
  if (context === null) return `has no context ${name}`
  const cluster = config.getCurrentCluster()
  if (cluster === null) return `the context ${name} names a cluster that is not there: ${context.cluster}`
  if (cluster.server === NOWHERE) return 'names no cluster, and this is no pod of one'
  if (!context.user || config.getCurrentUser() !== null) return undefined
  return `the context ${name} names a user that is not there: ${context.user}`
}
