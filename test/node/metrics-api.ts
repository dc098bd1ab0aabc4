/**
 * metrics.k8s.io as an autoscaler asks it for the CPU of pods. A stand-in for metrics-server, whose image no registry
 * gives here; the figures are the kubelet's own, of /metrics/resource, as metrics-server reads them.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Kube, kubectlOk } from '../kube/kube.ts'

const GROUP = 'metrics.k8s.io'
const API_VERSION = `${GROUP}/v1beta1`
/** Of this machine, as node.sh makes it known to the node's network. */
const ADDRESS = '10.98.1.2'
/** Two figures that are nearer are one. */
const LEAST_WINDOW_MS = 5_000
const SAMPLE =
  /^container_cpu_usage_seconds_total\{container="(.+)",namespace="(.+)",pod="(.+)"\} (\S+) (\d+)$/gm

/** CPU seconds that a container took up to a time, ms since 1970. */
interface Sample {
  seconds: number
  at: number
}
interface Usage {
  before?: Sample
  last: Sample
}

/** The usage of containers by `namespace/pod/container`, after one more page of the kubelet's metrics. */
export function taken(usage: ReadonlyMap<string, Usage>, page: string): Map<string, Usage> {
  const next = new Map<string, Usage>()
  for (const [, container, namespace, pod, seconds, at] of page.matchAll(SAMPLE)) {
    const key = `${namespace}/${pod}/${container}`
    const last = { seconds: Number(seconds), at: Number(at) }
    const known = usage.get(key)
    const isNew = known === undefined || last.at - known.last.at >= LEAST_WINDOW_MS
    next.set(key, isNew ? { last, ...(known && { before: known.last }) } : known)
  }
  return next
}

/** Serves it in the cluster, until `close` of what it resolves with. */
export async function serveMetrics(cluster: Kube): Promise<Server> {
  const certificate = selfSigned(cluster.dir)
  let usage = new Map<string, Usage>()
  const server = createServer(certificate, async (request, response) => {
    try {
      const url = new URL(request.url ?? '/', 'https://metrics')
      const asked = /^\/apis\/metrics\.k8s\.io\/v1beta1\/namespaces\/([^/]+)\/pods$/.exec(url.pathname)
      if (asked) usage = taken(usage, await kubeletPage(cluster))
      const body = asked
        ? await podMetrics(cluster, asked[1]!, url.searchParams.get('labelSelector') ?? '', usage)
        : discovery(url.pathname)
      response
        .writeHead(body ? 200 : 404, { 'Content-Type': 'application/json' })
        .end(JSON.stringify(body ?? {}))
    } catch (error) {
      response.writeHead(503).end(String(error))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, ADDRESS, resolve))
  await register(cluster, (server.address() as AddressInfo).port)
  return server
}

function selfSigned(dir: string): { key: Buffer; cert: Buffer } {
  const [key, cert] = [join(dir, 'metrics.key'), join(dir, 'metrics.crt')]
  const args = `req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=metrics -keyout ${key} -out ${cert}`
  spawnSync('openssl', args.split(' '))
  return { key: readFileSync(key), cert: readFileSync(cert) }
}

async function kubeletPage(cluster: Kube): Promise<string> {
  const name = await kubectlOk(cluster, ['get', 'nodes', '-o', 'jsonpath={.items[0].metadata.name}'])
  return kubectlOk(cluster, ['get', '--raw', `/api/v1/nodes/${name}/proxy/metrics/resource`])
}

/** Of pods that were seen twice; an autoscaler waits for the others. */
async function podMetrics(
  cluster: Kube,
  namespace: string,
  selector: string,
  usage: ReadonlyMap<string, Usage>,
): Promise<object> {
  const args = ['-n', namespace, 'get', 'pods', '-l', selector, '-o', 'json']
  const pods: { metadata: { name: string; labels: object } }[] = JSON.parse(
    await kubectlOk(cluster, args),
  ).items
  const items = pods.flatMap(({ metadata: { name, labels } }) => {
    const prefix = `${namespace}/${name}/`
    const found = [...usage].filter(([key, { before }]) => key.startsWith(prefix) && before)
    const [first] = found
    if (first === undefined) return []
    const { before, last } = first[1]
    return {
      metadata: { name, namespace, labels },
      timestamp: new Date(last.at).toISOString(),
      window: `${Math.round((last.at - before!.at) / 1000)}s`,
      containers: found.map(([key, each]) => ({ name: key.slice(prefix.length), usage: quantities(each) })),
    }
  })
  return { kind: 'PodMetricsList', apiVersion: API_VERSION, metadata: {}, items }
}

function quantities({ before, last }: Usage): { cpu: string; memory: string } {
  const nanoCores = Math.round(((last.seconds - before!.seconds) / (last.at - before!.at)) * 1e12)
  return { cpu: `${Math.max(0, nanoCores)}n`, memory: '0' }
}

function discovery(path: string): object | undefined {
  const version = { groupVersion: API_VERSION, version: 'v1beta1' }
  const pods = {
    name: 'pods',
    singularName: '',
    namespaced: true,
    kind: 'PodMetrics',
    verbs: ['get', 'list'],
  }
  if (path === `/apis/${API_VERSION}`)
    return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: API_VERSION, resources: [pods] }
  if (path === '/apis' || path === `/apis/${GROUP}`)
    return { kind: 'APIGroup', apiVersion: 'v1', name: GROUP, versions: [version], preferredVersion: version }
  return undefined
}

async function register(cluster: Kube, port: number): Promise<void> {
  const service = { name: 'metrics', namespace: 'kube-system' }
  const objects = [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: service,
      // The one kind of Service through which the API server asks an address outside of the pods' network.
      spec: { type: 'ExternalName', externalName: ADDRESS, ports: [{ port }] },
    },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: `v1beta1.${GROUP}` },
      spec: {
        group: GROUP,
        version: 'v1beta1',
        groupPriorityMinimum: 100,
        versionPriority: 100,
        insecureSkipTLSVerify: true,
        service: { ...service, port },
      },
    },
  ]
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects })
  await kubectlOk(cluster, ['apply', '--server-side', '-f', '-'], list)
  await kubectlOk(cluster, [
    'wait',
    `apiservice/v1beta1.${GROUP}`,
    '--for=condition=Available',
    '--timeout=60s',
  ])
}
