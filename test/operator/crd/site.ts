/** A cluster in which Buffers are defined, and requests to its API server as they go over the wire. */
import { join } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import { Agent, request } from 'undici'
import { CRD_FILE_NAME } from '../../../operator/crd/document.ts'
import { API_VERSION, GROUP, PLURAL } from '../../../operator/resource.ts'
import { type Kube, kubectlOk, namespace } from '../../kube/kube.ts'
import { eventually } from '../../support/eventually.ts'
import type { Json } from './fields.ts'

export const crdFile = join(import.meta.dirname, '..', '..', '..', 'crds', CRD_FILE_NAME)
export const samples = join(import.meta.dirname, '..', '..', '..', 'crds', 'samples')

export interface Answer {
  readonly status: number
  readonly body: Json
  readonly warnings: string
}

/** `All`: the API server judges, fills in and answers, but stores nothing. */
export type Options = Readonly<{ dryRun?: 'All'; fieldValidation?: 'Strict' | 'Warn' | 'Ignore' }>

export interface Site {
  readonly cluster: Kube
  readonly namespace: string
  /** Runs kubectl in the namespace; rejects with what it said when it fails. */
  kubectl(args: readonly string[], input?: string): Promise<string>
  create(resource: Json, options?: Options): Promise<Answer>
  /** Replaces the resource, or with `part` its status. */
  replace(resource: Json, options?: Options, part?: '/status'): Promise<Answer>
  read(name: string): Promise<Answer>
  remove(name: string): Promise<Answer>
  close(): Promise<void>
}

/** A namespace of its own in `cluster`. */
export async function openSite(cluster: Kube, prefix: string): Promise<Site> {
  const name = await namespace(cluster, prefix)
  const config = new KubeConfig()
  config.loadFromFile(cluster.kubeconfig)
  const { server, caData } = config.getCurrentCluster()!
  const agent = new Agent({ connect: { ca: Buffer.from(caData!, 'base64') }, connections: 8 })
  const path = `${server}/apis/${API_VERSION}/namespaces/${name}/${PLURAL}`

  async function send(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    url: string,
    body?: Json,
    options: Options = {},
  ) {
    const answer = await request(url, {
      method,
      dispatcher: agent,
      query: { ...options },
      headers: {
        authorization: `Bearer ${config.getCurrentUser()!.token}`,
        'content-type': 'application/json',
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    const warnings = [answer.headers.warning ?? []].flat().join('; ')
    return { status: answer.statusCode, body: (await answer.body.json()) as Json, warnings }
  }

  const nameOf = (resource: Json) => (resource.metadata as Json).name
  return {
    cluster,
    namespace: name,
    kubectl: (args, input) => kubectlOk(cluster, ['--namespace', name, ...args], input),
    create: (resource, options) => send('POST', path, resource, options),
    replace: (resource, options, part = undefined) =>
      send('PUT', `${path}/${nameOf(resource)}${part ?? ''}`, resource, options),
    read: (resource) => send('GET', `${path}/${resource}`),
    remove: (resource) => send('DELETE', `${path}/${resource}`),
    close: () => agent.close(),
  }
}

/** Defines Buffers in `cluster` as checked in; done when the API server serves them. */
export async function defineBuffers(cluster: Kube): Promise<void> {
  await kubectlOk(cluster, ['apply', '-f', crdFile])
  const established = ['wait', '--for=condition=Established', '--timeout=60s', `crd/${PLURAL}.${GROUP}`]
  // It fails at once while the definition has no conditions yet.
  await eventually(() => kubectlOk(cluster, established), { timeoutMs: 60_000, everyMs: 200 })
}
