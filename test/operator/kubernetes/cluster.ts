/** A client of the test's API server, and a store that follows some of its ConfigMaps, with all that it was told. */

import { readFileSync } from 'node:fs'
import { KubeConfig } from '@kubernetes/client-node'
import { systemClock, systemRandomness } from '../../../internal/runtime/system-clock.ts'
import { Cache } from '../../../operator/controller/cache.ts'
import type { Change } from '../../../operator/controller/ports.ts'
import { ApiServer, type ApiServerOptions } from '../../../operator/kubernetes/api-server.ts'
import { kubeconfigAccess } from '../../../operator/kubernetes/kubeconfig.ts'
import { Reflector, type ReflectorOptions } from '../../../operator/kubernetes/reflector.ts'
import type { Kube } from '../../kube/kube.ts'
import type { TcpProxy } from '../../support/tcp-proxy.ts'

/** Requests at once when a test makes many resources. */
const PARALLEL = 20
/** Not those that Kubernetes itself puts into each namespace. */
export const OURS = { labelSelector: 'penstock-test=yes' }

export interface ConfigMap {
  metadata: {
    namespace: string
    name: string
    uid: string
    resourceVersion: string
    annotations?: Record<string, string>
    managedFields?: unknown
  }
  data?: Record<string, string>
}

export function kubeConfig({ kubeconfig }: Kube, through?: TcpProxy): KubeConfig {
  const config = new KubeConfig()
  const text = readFileSync(kubeconfig, 'utf8')
  config.loadFromString(through ? text.replace(/(https:\/\/[\d.]+):\d+/, `$1:${through.port}`) : text)
  return config
}

export function apiPort(kube: Kube): number {
  return Number(new URL(kubeConfig(kube).getCurrentCluster()!.server).port)
}

export function apiServer(kube: Kube, options: ApiServerOptions = {}, through?: TcpProxy): ApiServer {
  return new ApiServer(kubeconfigAccess(kubeConfig(kube, through)), options)
}

export class ConfigMaps {
  readonly #api: ApiServer
  readonly #path: string

  constructor(api: ApiServer, namespace: string) {
    this.#api = api
    this.#path = `/api/v1/namespaces/${namespace}/configmaps`
  }

  create(name: string, value = '1'): Promise<ConfigMap> {
    const metadata = { name, labels: { 'penstock-test': 'yes' } }
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { value } }
    return this.#api.request('POST', this.#path, { body })
  }

  async createMany(names: readonly string[]): Promise<void> {
    const left = [...names]
    const worker = async () => {
      for (let name = left.pop(); name !== undefined; name = left.pop()) await this.create(name)
    }
    await Promise.all(Array.from({ length: PARALLEL }, worker))
  }

  change(name: string, value: string): Promise<ConfigMap> {
    return this.#api.request('PATCH', `${this.#path}/${name}`, {
      contentType: 'application/merge-patch+json',
      body: { data: { value } },
    })
  }

  annotate(name: string, annotations: Record<string, string>): Promise<ConfigMap> {
    return this.#api.request('PATCH', `${this.#path}/${name}`, {
      contentType: 'application/merge-patch+json',
      body: { metadata: { annotations } },
    })
  }

  async delete(name: string): Promise<void> {
    await this.#api.request('DELETE', `${this.#path}/${name}`)
  }
}

export interface Mirror {
  readonly cache: Cache<ConfigMap>
  readonly reflector: Reflector<ConfigMap>
  readonly changes: Change<ConfigMap>[]
  readonly logged: Error[]
  /** Name and value of all, sorted. */
  shown(): string[]
  stop(): Promise<void>
}

/** Follows our ConfigMaps of a namespace until `stop`. */
export function mirror(
  api: ApiServer,
  namespace: string,
  options: Partial<ReflectorOptions<ConfigMap>> = {},
): Mirror {
  const faults: unknown[] = []
  const changes: Change<ConfigMap>[] = []
  const logged: Error[] = []
  const cache = new Cache<ConfigMap>({ onFault: (error) => faults.push(error) })
  cache.subscribe((change) => changes.push(change))
  const log = (fields: Record<string, unknown>) => logged.push(fields.err as Error)
  const reflector = new Reflector<ConfigMap>({
    api,
    namespace,
    collection: { root: '/api/v1', plural: 'configmaps' },
    query: OURS,
    replica: cache,
    clock: systemClock(),
    randomness: systemRandomness(),
    log: { debug: log, warn: log },
    ...options,
  })
  const stop = new AbortController()
  const running = reflector.run(stop.signal)
  return {
    cache,
    reflector,
    changes,
    logged,
    shown: () =>
      cache
        .list()
        .map(({ metadata, data }) => `${metadata.name}=${data?.value}`)
        .sort(),
    stop: async () => {
      stop.abort()
      await running
      if (faults.length > 0) throw new Error(`the store failed: ${faults}`)
    },
  }
}

export function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${String(index).padStart(4, '0')}`)
}
