/**
 * The operator's program between a real API server and the real admin API: namespaces of its own, a proxy that counts and
 * interferes, and what a user does to resources.
 */
import { randomBytes } from 'node:crypto'
import { KubeConfig } from '@kubernetes/client-node'
import { ApiError } from '../../../operator/kubernetes/api-error.ts'
import { ApiServer } from '../../../operator/kubernetes/api-server.ts'
import { kubeconfigAccess } from '../../../operator/kubernetes/kubeconfig.ts'
import {
  API_VERSION,
  type BufferResource,
  type BufferSpec,
  type Condition,
  type ConditionType,
  KIND,
  PLURAL,
} from '../../../operator/resource.ts'
import { type Kube, namespace } from '../../kube/kube.ts'
import type { Api } from '../../support/api.ts'
import { eventually } from '../../support/eventually.ts'
import type { Installation, LogEvent, Service } from '../../support/service.ts'
import { startService } from '../../support/service.ts'
import { tempFolder } from '../../support/temp-folders.ts'
import { defineBuffers } from '../crd/site.ts'
import { AdminProxy } from './admin-proxy.ts'
import type { DeletionWebhook } from './deletion-webhook.ts'

/** The machine may be busy with other things; ms. */
const PATIENCE = { timeoutMs: 100_000, everyMs: 50 }

export interface KubeEvent {
  readonly type: string
  readonly reason: string
  readonly note: string
  readonly regarding: { readonly name: string; readonly uid: string }
}

type Values = Record<string, string | Uint8Array>

/** Members of a spec as a user writes them: what is not said is filled in by the API server. */
export type SpecFields = { [K in keyof BufferSpec]?: unknown }

export class OperatorHarness {
  readonly cluster: Kube
  readonly proxy: AdminProxy
  /** As the owner of the customer that the resources' key belongs to. */
  readonly api: Api
  readonly projectId: string
  /** The first is where everything is unless a test says otherwise. */
  readonly namespaces: readonly string[]
  readonly #kube: ApiServer
  readonly operators: Service[] = []

  private constructor(
    cluster: Kube,
    proxy: AdminProxy,
    api: Api,
    projectId: string,
    namespaces: readonly string[],
  ) {
    this.cluster = cluster
    this.proxy = proxy
    this.api = api
    this.projectId = projectId
    this.namespaces = namespaces
    const config = new KubeConfig()
    config.loadFromFile(cluster.kubeconfig)
    this.#kube = new ApiServer(kubeconfigAccess(config))
  }

  /** Two namespaces, a project, and in both a Secret `penstock` with the owner's key. */
  static async open(cluster: Kube, installation: Installation): Promise<OperatorHarness> {
    await defineBuffers(cluster)
    const namespaces = [await namespace(cluster, 'shop'), await namespace(cluster, 'other')]
    const proxy = await AdminProxy.to(() => installation.service.url)
    const api = installation.api()
    const harness = new OperatorHarness(cluster, proxy, api, await api.createProject(), namespaces)
    for (const each of namespaces) await harness.createSecret('penstock', { apiKey: api.key! }, each)
    return harness
  }

  get namespace(): string {
    return this.namespaces[0]!
  }

  /** Ends the operators too; one that did not end well is an error. */
  async close(): Promise<void> {
    this.proxy.interfere()
    const running = this.operators.filter(({ child }) => child.exitCode === null && child.signalCode === null)
    for (const { child } of running) child.kill('SIGTERM')
    await Promise.all(running.map((operator) => operator.exited()))
    // Those that a test killed have a signal.
    const codes = this.operators.map(({ child }) => child.exitCode ?? 0)
    await this.proxy.close()
    await this.#kube.close()
    if (codes.some((code) => code !== 0))
      throw new Error(`an operator ended with ${codes}:\n${this.output()}`)
  }

  /** Runs the program and resolves when it leads. */
  async operate(env: Record<string, string> = {}): Promise<Service> {
    const service = await this.spawn(env)
    await this.untilLogged(service, 'leading')
    return service
  }

  /** Runs the program and resolves as soon as its process is there. `program`: of another checkout. `flags`: of node. */
  async spawn(
    env: Record<string, string> = {},
    program = 'cmd/operator/main.ts',
    flags: readonly string[] = [],
  ): Promise<Service> {
    const service = await startService({
      dataDir: tempFolder('operator'),
      program,
      flags,
      env: {
        KUBECONFIG: this.cluster.kubeconfig,
        PENSTOCK_ADMIN_URL: this.proxy.url,
        PENSTOCK_WATCH_NAMESPACES: this.namespaces.join(','),
        PENSTOCK_LEASE_NAMESPACE: this.namespace,
        PENSTOCK_LOG_LEVEL: 'debug',
        ...env,
      },
    })
    this.operators.push(service)
    return service
  }

  /** The event, once an operator has logged it; rejects with its output when it ends before. */
  async untilLogged(service: Service, msg: string): Promise<LogEvent> {
    const ended = service.exited().then((code) => {
      throw new Error(`the operator ended with ${code}:\n${service.output()}`)
    })
    ended.catch(() => {})
    const logged = eventually(() => service.events.find((event) => event.msg === msg) ?? false, PATIENCE)
    return Promise.race([logged, ended])
  }

  /** What all operators have written. */
  output(): string {
    return this.operators.map((operator) => operator.output()).join('\n')
  }

  /** A name that nobody else uses as an id at the service. */
  name(prefix: string): string {
    return `${prefix}-${randomBytes(4).toString('hex')}`
  }

  /** The resource as the API server stores it. */
  create(name: string, spec: SpecFields = {}, within: string = this.namespace): Promise<BufferResource> {
    const wanted = {
      projectId: this.projectId,
      groupKey: { mode: 'jsonpath', path: '$.group' },
      delivery: { url: 'http://127.0.0.1:9/hook' },
      credentialsRef: { name: 'penstock' },
      ...spec,
    }
    const body = { apiVersion: API_VERSION, kind: KIND, metadata: { name, namespace: within }, spec: wanted }
    return this.#kube.request('POST', path(within), { body })
  }

  /** JSON merge patch. */
  patch(name: string, body: object, within: string = this.namespace): Promise<BufferResource> {
    const contentType = 'application/merge-patch+json'
    return this.#kube.request('PATCH', `${path(within)}/${name}`, { body, contentType })
  }

  read(name: string, within: string = this.namespace): Promise<BufferResource> {
    return this.#kube.request('GET', `${path(within)}/${name}`)
  }

  async list(): Promise<BufferResource[]> {
    const lists = this.namespaces.map((each) =>
      this.#kube.request<{ items: BufferResource[] }>('GET', path(each)),
    )
    return (await Promise.all(lists)).flatMap(({ items }) => items)
  }

  async remove(name: string, within: string = this.namespace): Promise<void> {
    await this.#kube.request('DELETE', `${path(within)}/${name}`)
  }

  /** Has the webhook asked; resolves with what ends that. */
  async admit({ configuration }: DeletionWebhook): Promise<() => Promise<void>> {
    const all = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
    const { metadata } = await this.#kube.request<{ metadata: { name: string } }>('POST', all, {
      body: configuration,
    })
    return () => this.#kube.request('DELETE', `${all}/${metadata.name}`)
  }

  /** Resolves when no resource of the name is there. */
  async untilGone(name: string, within: string = this.namespace): Promise<void> {
    await eventually(async () => {
      try {
        await this.read(name, within)
        return false
      } catch (error) {
        return error instanceof ApiError && error.status === 404
      }
    }, PATIENCE)
  }

  /** The resource, once a condition of its latest generation has the status and, when given, the reason. */
  untilCondition(
    name: string,
    type: ConditionType,
    {
      status = 'True',
      reason,
      within = this.namespace,
    }: { status?: string; reason?: string; within?: string } = {},
  ): Promise<BufferResource> {
    return eventually(async () => {
      const resource = await this.read(name, within)
      const found = condition(resource, type)
      const holds =
        found?.status === status &&
        found.observedGeneration === resource.metadata.generation &&
        (reason === undefined || found.reason === reason)
      if (!holds) throw new Error(`${name}: ${JSON.stringify(resource.status)}`)
      return resource
    }, PATIENCE)
  }

  /** Ready, of its latest generation, with nothing under way. */
  untilReady(name: string, within: string = this.namespace): Promise<BufferResource> {
    return eventually(async () => {
      const resource = await this.untilCondition(name, 'Ready', { within })
      return condition(resource, 'Reconciling') === undefined && resource
    }, PATIENCE)
  }

  createSecret(name: string, values: Values, within: string = this.namespace): Promise<unknown> {
    const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name }, data: encoded(values) }
    return this.#kube.request('POST', `/api/v1/namespaces/${within}/secrets`, { body })
  }

  patchSecret(name: string, values: Values, within: string = this.namespace): Promise<unknown> {
    const contentType = 'application/merge-patch+json'
    const secret = `/api/v1/namespaces/${within}/secrets/${name}`
    return this.#kube.request('PATCH', secret, { body: { data: encoded(values) }, contentType })
  }

  removeSecret(name: string, within: string = this.namespace): Promise<unknown> {
    return this.#kube.request('DELETE', `/api/v1/namespaces/${within}/secrets/${name}`)
  }

  removeNamespace(within: string): Promise<unknown> {
    return this.#kube.request('DELETE', `/api/v1/namespaces/${within}`)
  }

  async events(within: string = this.namespace): Promise<KubeEvent[]> {
    const events = `/apis/events.k8s.io/v1/namespaces/${within}/events`
    return (await this.#kube.request<{ items: KubeEvent[] }>('GET', events)).items
  }

  /** The first Event about a resource with the reason, once it is there. */
  untilEvent(name: string, reason: string, within: string = this.namespace): Promise<KubeEvent> {
    return eventually(async () => {
      const found = (await this.events(within)).find(
        (event) => event.regarding.name === name && event.reason === reason,
      )
      return found ?? false
    }, PATIENCE)
  }
}

export function condition(resource: BufferResource, type: ConditionType): Condition | undefined {
  return resource.status?.conditions?.find((each) => each.type === type)
}

/** Until what may take long on a busy machine holds. */
export function inTime<T>(attempt: () => T | Promise<T>) {
  return eventually(attempt, PATIENCE)
}

function path(within: string): string {
  return `/apis/${API_VERSION}/namespaces/${within}/${PLURAL}`
}

function encoded(values: Values): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
  )
}
