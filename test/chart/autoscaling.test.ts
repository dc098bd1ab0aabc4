/**
 * No step of a release takes pods away that an autoscaler has set. What an autoscaler does is done here by the scale
 * subresource, as it does it. With `--server-side=false` Helm 4 merges the way Helm 3 does.
 */
import { expect } from 'chai'
import { afterEach, before, describe, it } from 'mocha'
import { type Kube, kubectl, kubectlOk, kubeOrSkip, namespace } from '../kube/kube.ts'
import { eventually } from '../support/eventually.ts'
import { chart, helm, helmOk, leastCluster, render, type Values } from './helm.ts'

const ON: Values = { ingress: { autoscaling: { enabled: true } } }
const OFF: Values = { ingress: { autoscaling: { enabled: false } } }
const BASE: Values = { operator: { enabled: false }, crds: { install: false } }
const METHODS = { 'server-side apply': 'true', 'a three-way merge': 'false' }

describe('the number of pods that an autoscaler has set', function () {
  this.timeout(180_000)
  let cluster: Kube
  const made: string[] = []
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
  })
  // The nodes have room for so many pods, and other tests need some.
  afterEach(async () => {
    for (const ns of made.splice(0)) await kubectlOk(cluster, ['delete', 'namespace', ns, '--wait=false'])
  })

  /** A namespace that goes with its test. */
  const ownNamespace = async () => {
    const ns = await namespace(cluster, 'scaling')
    made.push(ns)
    return ns
  }

  /** A release in a namespace of its own, whose hooks do not run. */
  const releaseOf = async (serverSide: string, values: Values) => {
    const ns = await ownNamespace()
    const options = (more: Values) => ({ namespace: ns, values: [more] })
    const upgrade = (more: Values = {}, args: readonly string[] = []) =>
      helm(
        cluster,
        ['upgrade', 'p', chart, '--reset-then-reuse-values', '--no-hooks', ...args],
        options(more),
      )
    const method = `--server-side=${serverSide}`
    await helmOk(cluster, ['install', 'p', chart, '--no-hooks', method], {
      namespace: ns,
      values: [leastCluster, BASE, values],
    })
    let round = 0
    const deployment = deploymentOf(cluster, ns)
    if (values === ON) await deployment.isScaled()
    return {
      ...deployment,
      upgrade,
      /** An upgrade that changes something else. */
      change: () => upgrade({ ingress: { podAnnotations: { round: `${++round}` } } }),
      rollback: (revision: number, args: readonly string[] = []) =>
        helm(cluster, ['rollback', 'p', `${revision}`, '--no-hooks', ...args], { namespace: ns }),
    }
  }

  for (const [method, serverSide] of Object.entries(METHODS)) {
    it(`stays with autoscaling on from the start, over upgrades and rollbacks: ${method}`, async () => {
      const release = await releaseOf(serverSide, ON)
      await release.scale(8)
      for (const pods of [8, 9]) {
        ok(await release.change())
        expect(await release.pods(), 'upgraded').to.equal(pods)
        await release.scale(pods + 1)
      }
      for (const revision of [2, 1]) {
        ok(await release.rollback(revision))
        expect(await release.pods(), `rolled back to ${revision}`).to.equal(10)
      }
    })

    it(`stays when an upgrade comes before the autoscaler: ${method}`, async () => {
      const release = await releaseOf(serverSide, ON)
      ok(await release.change())
      await release.scale(8)
      ok(await release.rollback(1))
      expect(await release.pods()).to.equal(8)
    })

    it(`stays when autoscaling is turned off, on again, and gone back to: ${method}`, async () => {
      const release = await releaseOf(serverSide, ON)
      await release.scale(8)
      for (const [what, step] of Object.entries({
        'turned off': () => release.upgrade(OFF),
        'changed while it is off': release.change,
        'gone back to on': () => release.rollback(1),
        'gone back to off': () => release.rollback(2),
        'turned on': () => release.upgrade(ON),
        'changed while it is on': release.change,
      })) {
        ok(await step())
        expect(await release.pods(), what).to.equal(8)
      }
    })

    it(`ends with a changed number in the values, once autoscaling is off: ${method}`, async () => {
      const release = await releaseOf(serverSide, ON)
      await release.scale(8)
      ok(await release.upgrade(OFF))
      const args = serverSide === 'true' ? ['--force-conflicts'] : []
      ok(await release.upgrade({ ingress: { replicas: 4 } }, args))
      expect(await release.pods()).to.equal(4)
      ok(await release.change())
      expect(await release.pods()).to.equal(4)
    })

    it(`is first the number that ran, when autoscaling is turned on later: ${method}`, async () => {
      const release = await releaseOf(serverSide, { ingress: { replicas: 5 } })
      for (const step of [() => release.upgrade(ON), release.change]) {
        ok(await step())
        expect(await release.pods()).to.equal(5)
      }
      await release.scale(8)
      ok(await release.change())
      expect(await release.pods(), 'upgraded').to.equal(8)
      ok(await release.upgrade(OFF))
      expect(await release.pods(), 'turned off').to.equal(8)
      ok(await release.rollback(4))
      expect(await release.pods(), 'gone back to on').to.equal(8)
    })
  }

  it('is not taken by a rollback to a revision with another number: server-side apply refuses it', async () => {
    const release = await releaseOf('true', { ingress: { replicas: 5 } })
    ok(await release.upgrade(ON))
    await release.scale(8)
    const { code, stderr } = await release.rollback(1)
    expect({ code, pods: await release.pods() }).to.deep.equal({ code: 1, pods: 8 })
    expect(stderr).to.include('conflict').and.include('.spec.replicas')
    ok(await release.upgrade(OFF))
    expect(await release.pods(), 'after the upgrade that ends the half-way state').to.equal(8)
  })

  it('is in no revision, where somebody scaled before autoscaling was turned on', async () => {
    const release = await releaseOf('true', { ingress: { replicas: 5 } })
    await release.scale(6)
    ok(await release.upgrade(ON))
    await release.scale(8)
    ok(await release.change())
    ok(await release.rollback(2))
    expect(await release.pods()).to.equal(8)
  })

  it('stays in a release of the chart before, which says nothing of who has the number', async () => {
    const release = await releaseOf('true', ON)
    await release.scale(8)
    for (const step of [release.change, () => release.upgrade(OFF), () => release.rollback(1)]) {
      await release.annotate('penstock.dev/replicas-')
      ok(await step())
      expect(await release.pods()).to.equal(8)
    }
  })

  it('is the number of the values where nothing ever scaled', async () => {
    const release = await releaseOf('true', { ingress: { replicas: 5 } })
    ok(await release.upgrade({ ingress: { replicas: 3 } }))
    expect(await release.pods()).to.equal(3)
  })

  for (const args of [['--server-side'], []]) {
    it(`stays where rendered manifests are applied, as Argo CD does: kubectl apply ${args}`, async () => {
      const ns = await ownNamespace()
      const { pods, scale, isScaled } = deploymentOf(cluster, ns)
      const apply = async (note: string) => {
        const values = [leastCluster, BASE, ON, { ingress: { podAnnotations: { note } } }]
        const items = await render(cluster, values, { namespace: ns, further: ['--no-hooks'] })
        const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
        ok(await kubectl(cluster, ['apply', ...args, '-f', '-'], list))
      }
      await apply('old')
      await isScaled()
      await scale(8)
      for (const note of ['new', 'old']) {
        await apply(note)
        expect(await pods(), note).to.equal(8)
      }
    })
  }
})

function deploymentOf(cluster: Kube, ns: string) {
  const name = 'p-penstock-ingress'
  const pods = async (): Promise<number> => {
    const text = await kubectlOk(cluster, ['-n', ns, 'get', 'deployment', name, '-o', 'json'])
    return JSON.parse(text).spec.replicas
  }
  return {
    pods,
    /** The cluster's own autoscaler knows no load, but makes one pod the least of the values: two. */
    isScaled: () => eventually(async () => (await pods()) === 2, { timeoutMs: 60_000, everyMs: 100 }),
    scale: (count: number) =>
      kubectlOk(cluster, ['-n', ns, 'scale', 'deployment', name, `--replicas=${count}`]),
    annotate: (change: string) => kubectlOk(cluster, ['-n', ns, 'annotate', 'deployment', name, change]),
  }
}

function ok({ code, stderr }: { code: number; stderr: string }): void {
  expect(code, stderr).to.equal(0)
}
