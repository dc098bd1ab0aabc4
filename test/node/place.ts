/** A namespace of the real node, as somebody who runs a release in it has it before them. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { expect } from 'chai'
import { chart, helm, helmOk, type Manifest, type Values } from '../chart/helm.ts'
import { type Kube, kubectl, kubectlOk, namespace } from '../kube/kube.ts'
import { eventually } from '../support/eventually.ts'
import { tell } from './real-node.ts'
import { deliveredAll, repeated, startReceiver, twoBodies } from './receiver.ts'
import type { Sender } from './sender.ts'

/** For what waits for pods; the machine may be busy. */
const PATIENCE = ['--wait', '--timeout', '8m']
const KINDS =
  'pods,deployments,replicasets,statefulsets,jobs,services,configmaps,secrets,serviceaccounts,persistentvolumeclaims'
const BUFFER = 'orders'
const PROJECT = 'shop'
/** Of node.sh: deliveries to a Service have a private address. */
export const SERVICE_ADDRESSES = '10.96.0.0/16'

export class Place {
  readonly cluster: Kube
  readonly namespace: string

  private constructor(cluster: Kube, name: string) {
    this.cluster = cluster
    this.namespace = name
  }

  /** With a receiver in it; pods that are not restricted are refused. */
  static async make(cluster: Kube, prefix: string): Promise<Place> {
    const place = new Place(cluster, await namespace(cluster, prefix))
    await startReceiver(cluster, place.namespace)
    return place
  }

  kubectl(...args: string[]): Promise<string> {
    return kubectlOk(this.cluster, ['-n', this.namespace, ...args])
  }

  async apply(manifest: Manifest): Promise<void> {
    await kubectlOk(this.cluster, ['-n', this.namespace, 'apply', '-f', '-'], JSON.stringify(manifest))
  }

  async list(kinds: string): Promise<Manifest[]> {
    return JSON.parse(await this.kubectl('get', kinds, '-o', 'json')).items
  }

  /** Every value that a field of an object has while `change` runs. `path`: as in jsonpath. */
  async watched(name: string, path: string, change: () => Promise<void>): Promise<string[]> {
    const { bin, kubeconfig } = this.cluster
    const args = ['--kubeconfig', kubeconfig, '-n', this.namespace, 'get', name, '--watch']
    const child = spawn(join(bin, 'kubectl'), [...args, '-o', `jsonpath=${path}{"\\n"}`])
    const ended = new Promise((resolve) => child.on('close', resolve))
    let text = ''
    child.stdout.on('data', (chunk) => {
      text += chunk
    })
    try {
      await eventually(() => text !== '', { timeoutMs: 30_000 })
      await change()
    } finally {
      child.kill()
      await ended
    }
    return text.trim().split('\n')
  }

  /** The pods of a component of the release. */
  async pods(component: string): Promise<Manifest[]> {
    const found = await this.list('pods')
    return found.filter(({ metadata }) => metadata.labels['app.kubernetes.io/component'] === component)
  }

  install(...values: (string | Values)[]): Promise<string> {
    return this.installFrom(chart, ...values)
  }

  /** `path`: of a chart. */
  installFrom(path: string, ...values: (string | Values)[]): Promise<string> {
    return helmOk(this.cluster, ['install', 'p', path, ...PATIENCE], { namespace: this.namespace, values })
  }

  upgrade(values: Values): Promise<string> {
    const args = ['upgrade', 'p', chart, '--reset-then-reuse-values', ...PATIENCE]
    return helmOk(this.cluster, args, { namespace: this.namespace, values: [values] })
  }

  /** `helm rollback` to the revision before; with `wait: false` it is only begun, to `revision`. */
  rollback({ revision = 0, wait = true } = {}): Promise<string> {
    const args = ['rollback', 'p', String(revision), ...(wait ? PATIENCE : [])]
    return helmOk(this.cluster, args, { namespace: this.namespace })
  }

  /** `helm test`; rejects with the log of its pod when it fails. */
  async test(): Promise<void> {
    const { code, stderr } = await helm(this.cluster, ['test', 'p', '--timeout', '5m'], {
      namespace: this.namespace,
    })
    if (code !== 0) throw new Error(`${stderr}\n${await this.kubectl('logs', 'p-penstock-test')}`)
  }

  /** Uninstalls the release, and returns what it leaves behind, as `Kind/name`. */
  async uninstall(): Promise<string[]> {
    await helmOk(this.cluster, ['uninstall', 'p', '--wait'], { namespace: this.namespace })
    // Helm waits for what it made, not for the pods of that.
    const left = await eventually(
      async () => {
        const found = (await this.list(KINDS)).filter(
          ({ metadata }) => metadata.labels?.['app.kubernetes.io/instance'] === 'p',
        )
        return !found.some(({ metadata }) => metadata.deletionTimestamp || metadata.ownerReferences) && found
      },
      { timeoutMs: 60_000, everyMs: 500 },
    )
    return left.map(({ kind, metadata }) => `${kind}/${metadata.name}`)
  }

  /** Of a Service, by its address: names are known to pods only. */
  async url(service: string): Promise<string> {
    return `http://${await this.kubectl('get', 'service', service, '-o', 'jsonpath={.spec.clusterIP}')}`
  }

  /** Makes the project of the tests. `service`: of the management API. */
  async makeProject(service: string, key: string): Promise<void> {
    const answer = await fetch(`${await this.url(service)}/v1/admin/projects`, {
      method: 'POST',
      headers: { 'X-API-Key': key },
      body: JSON.stringify({ projectId: PROJECT, name: 'Shop' }),
    })
    expect(answer.status, await answer.text()).to.equal(201)
  }

  /** Applies a Buffer that delivers to the receiver, and waits until it is Ready. */
  async makeBuffer(key: string, batch: Values = {}): Promise<void> {
    await this.kubectl('create', 'secret', 'generic', 'penstock-api-key', `--from-literal=apiKey=${key}`)
    await this.apply({
      apiVersion: 'buffering.penstock.dev/v1alpha1',
      kind: 'Buffer',
      metadata: { name: BUFFER },
      spec: {
        projectId: PROJECT,
        groupKey: { mode: 'jsonpath', path: '$.customer' },
        batch,
        delivery: { url: `http://receiver.${this.namespace}.svc.cluster.local/` },
        credentialsRef: { name: 'penstock-api-key' },
      },
    })
    await this.kubectl('wait', `buffer/${BUFFER}`, '--for=condition=Ready', '--timeout=60s')
  }

  /** Of the Buffer, at the service that takes webhooks. */
  async ingestUrl(service: string): Promise<string> {
    return `${await this.url(service)}/v1/ingest/${PROJECT}/${BUFFER}`
  }

  /** Whether all that the sender sent was accepted at once, and each webhook was delivered once. */
  async judge({ name, accepted, refused }: Sender): Promise<void> {
    const delivered = await deliveredAll(await this.url('receiver'), accepted)
    tell(`${name}: ${accepted.length} webhooks in all, ${refused.length} attempts refused`)
    expect(refused).to.deep.equal([])
    expect(repeated(delivered)).to.deep.equal([])
    expect(twoBodies(delivered)).to.deep.equal([])
  }

  /** What the operator left of the Buffer at the service once its resource is gone: the status of a GET. */
  async deleteBuffer(service: string, key: string): Promise<number> {
    await this.kubectl('delete', 'buffer', BUFFER, '--timeout=60s')
    const url = `${await this.url(service)}/v1/admin/buffers/${BUFFER}`
    return (await fetch(url, { headers: { 'X-API-Key': key } })).status
  }

  /** Containers of the release that ended by themselves: killed for their memory, by a probe, or of an error. */
  async restarts(): Promise<string[]> {
    const pods = await this.list('pods')
    return pods.flatMap(({ metadata, status }) =>
      (status.containerStatuses ?? [])
        .filter(({ restartCount }: Manifest) => restartCount > 0)
        .map(({ lastState }: Manifest) => `${metadata.name}: ${JSON.stringify(lastState)}`),
    )
  }

  /** After a failure, on stderr: pods, what happened to them, and their last words. */
  async tellAll(): Promise<void> {
    const said = [await this.#said('get', 'pods', '-o', 'wide')]
    said.push(await this.#said('get', 'events', '--sort-by=.lastTimestamp'))
    for (const { metadata } of await this.list('pods'))
      said.push(metadata.name, await this.#said('logs', '--tail=15', '--all-containers', metadata.name))
    process.stderr.write(`${said.join('\n')}\n`)
  }

  async #said(...args: string[]): Promise<string> {
    const { stdout, stderr } = await kubectl(this.cluster, ['-n', this.namespace, ...args])
    return stdout + stderr
  }
}
