/** What a node's life does to pods: a drain evicts them, and a lack of memory kills their programs. */
import { join } from 'node:path'
import { expect } from 'chai'
import type { Manifest } from '../chart/helm.ts'
import { kubectl, run } from '../kube/kube.ts'
import { eventually } from '../support/eventually.ts'
import type { Place } from './place.ts'

/**
 * Evicts all pods of a component as `kubectl drain` does it: by the Eviction API, all at once, and again where a
 * disruption budget refuses. The node stays open, for there is no other one to take the pods. Returns how often a
 * budget refused.
 */
export async function drain(place: Place, component: string): Promise<number> {
  const pods = await place.pods(component)
  const refusals = await Promise.all(pods.map((pod) => evict(place, pod)))
  await place.kubectl('rollout', 'status', `deployment/p-penstock-${component}`, '--timeout=180s')
  return refusals.reduce((sum, each) => sum + each, 0)
}

async function evict(place: Place, { metadata: { name, uid } }: Manifest): Promise<number> {
  const path = `/api/v1/namespaces/${place.namespace}/pods/${name}/eviction`
  const eviction = JSON.stringify({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } })
  let refusals = 0
  await eventually(
    async () => {
      const { code, stderr } = await kubectl(place.cluster, ['create', '--raw', path, '-f', '-'], eviction)
      if (code === 0) return
      if (stderr.includes('disruption budget')) refusals++
      throw new Error(stderr)
    },
    { timeoutMs: 300_000, everyMs: 1_000 },
  )
  await eventually(async () => !(await place.list('pods')).some((pod) => pod.metadata.uid === uid), {
    timeoutMs: 120_000,
    everyMs: 500,
  })
  return refusals
}

/** Ends the program of one pod of a component by SIGKILL; resolves with the pod's name once the kubelet started it again. */
export async function killProgram(place: Place, component: string): Promise<string> {
  const [{ metadata, status }] = (await place.pods(component)) as [Manifest]
  const [{ containerID, restartCount }] = status.containerStatuses
  const { dir, bin } = place.cluster
  const container = ['-a', join(dir, 'containerd.sock'), '-n', 'k8s.io', 'tasks', 'kill', '-s', 'SIGKILL']
  const { code, stderr } = await run(join(bin, 'ctr'), [
    ...container,
    containerID.replace('containerd://', ''),
  ])
  expect(code, stderr).to.equal(0)
  await eventually(
    async () => {
      const pod = (await place.pods(component)).find(({ metadata: { uid } }) => uid === metadata.uid)
      const [now] = pod.status.containerStatuses
      return now.restartCount > restartCount && now.ready
    },
    { timeoutMs: 120_000, everyMs: 500 },
  )
  return metadata.name
}
