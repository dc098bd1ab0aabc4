/** The chart under Helm 3, which many still have: it renders the same, and runs through its life. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { type Kube, kubectlOk, namespace, start, stopKube, toolsOrSkip } from '../kube/kube.ts'
import { eventually } from '../support/eventually.ts'
import { chart, helm, helmOk, leastLocal, type Manifest, nameOf, render, type Values } from './helm.ts'
import { matrix } from './matrix.ts'
import { withHelm3 } from './tools.ts'

const values: Values = {
  nats: { url: 'nats://nats:4222' },
  database: { urlSecret: { name: 'stores' } },
  encryptionKeySecret: { name: 'stores' },
  ownerKeysSecret: { name: 'stores' },
}

// A cluster of its own: definitions and roles belong to the whole of it.
describe('the chart under Helm 3', function () {
  this.timeout(120_000)
  let cluster: Kube
  let older: Kube
  let ns: string
  before(async function () {
    this.timeout(900_000)
    const tools = await toolsOrSkip(this)
    const started = await start({ parts: 'controller-manager scheduler kwok' })
    if (started === undefined) return this.skip()
    cluster = started
    older = withHelm3(cluster, tools)
    ns = await namespace(cluster, 'helm3')
  })
  after(async () => {
    if (cluster) await stopKube(cluster)
  })

  const replicas = async (component: string): Promise<number> => {
    const args = ['-n', ns, 'get', 'deployment', `p-penstock-${component}`, '-o', 'jsonpath={.spec.replicas}']
    return Number(await kubectlOk(cluster, args))
  }
  const list = async (kinds: string): Promise<Manifest[]> =>
    JSON.parse(await kubectlOk(cluster, ['-n', ns, 'get', kinds, '-o', 'json'])).items
  const upgrade = (more: Values) =>
    helmOk(older, ['upgrade', 'p', chart, '--reset-then-reuse-values', '--wait', '--timeout', '90s'], {
      namespace: ns,
      values: [more],
    })

  it('is Helm 3.19, beside Helm 4', async () => {
    expect(await helmOk(older, ['version', '--short'])).to.match(/^v3\.19\./)
    expect(await helmOk(cluster, ['version', '--short'])).to.match(/^v4\./)
  })

  it('passes helm lint, and is rendered as by Helm 4', async () => {
    for (const { what, values, further } of matrix) {
      await helmOk(older, ['lint', '--strict', chart], { values })
      const options = further ? { further } : {}
      const [one, other] = [await render(older, values, options), await render(cluster, values, options)]
      expect(one.map(comparable), what).to.deep.equal(other.map(comparable))
    }
  })

  it('refuses bad values in the same words', async () => {
    for (const [bad, why] of [
      [{ config: { shard: 4 } }, "'/config': additional properties 'shard' not allowed"],
      [{ nats: { url: '' } }, 'nats.url or nats.urlSecret.name is required'],
    ] as const) {
      const { code, stderr } = await helm(older, ['template', 'p', chart], { values: [values, bad] })
      expect(code).to.equal(1)
      expect(stderr).to.include(why)
    }
  })

  it('is installed: all pods become ready, and helm test passes', async () => {
    const args = ['install', 'p', chart, '--wait', '--timeout', '90s']
    const notes = await helmOk(older, args, { namespace: ns, values: [values] })
    expect(notes).to.include('STATUS: deployed').and.include(`http://p-penstock-ingress.${ns}.svc`)
    expect(await helmOk(older, ['test', 'p', '--timeout', '60s'], { namespace: ns })).to.match(
      /Phase: +Succeeded/,
    )
  })

  it('is upgraded and rolled back', async () => {
    expect(await upgrade({ admin: { replicas: 3 }, actor: { podAnnotations: { note: 'new' } } })).to.include(
      'REVISION: 2',
    )
    expect(await replicas('admin')).to.equal(3)
    await helmOk(older, ['rollback', 'p', '--wait', '--timeout', '90s'], { namespace: ns })
    expect(await replicas('admin')).to.equal(2)
    const pods = await eventually(
      async () => {
        const found = (await list('pods')).filter(
          ({ metadata }) => metadata.labels['app.kubernetes.io/component'] === 'actor',
        )
        return found.length === 3 && found
      },
      { timeoutMs: 60_000, everyMs: 100 },
    )
    expect(pods.map(({ metadata }) => metadata.annotations?.note)).to.deep.equal([
      undefined,
      undefined,
      undefined,
    ])
  })

  it('keeps the number of pods that the autoscaler has set over an upgrade', async () => {
    const scaled = { actor: { autoscaling: { enabled: true } } }
    await upgrade(scaled)
    await kubectlOk(cluster, ['-n', ns, 'scale', 'deployment', 'p-penstock-actor', '--replicas=5'])
    await upgrade({ ...scaled, admin: { podAnnotations: { note: 'newer' } } })
    expect(await replicas('actor')).to.equal(5)
  })

  it('goes on under Helm 4, and leaves the definition when it is uninstalled', async () => {
    const args = ['upgrade', 'p', chart, '--reset-then-reuse-values', '--wait', '--timeout', '90s']
    await helmOk(cluster, args, { namespace: ns })
    expect(await replicas('actor')).to.equal(5)
    await helmOk(older, ['uninstall', 'p', '--wait'], { namespace: ns })
    const kinds =
      'deployments,services,configmaps,serviceaccounts,roles,jobs,networkpolicies,poddisruptionbudgets'
    await eventually(
      async () =>
        (await list(kinds)).every(({ metadata }) => metadata.labels?.['app.kubernetes.io/instance'] !== 'p'),
      { timeoutMs: 60_000, everyMs: 100 },
    )
    const left = JSON.parse(await kubectlOk(cluster, ['get', 'crd,clusterrole', '-o', 'json']))
      .items as Manifest[]
    expect(left.map(nameOf).filter((name) => name.includes('penstock'))).to.deep.equal([
      'CustomResourceDefinition/buffers.buffering.penstock.dev',
    ])
  })

  it('keeps the key of one pod over upgrades', async () => {
    const options = { namespace: ns, values: [leastLocal, { crds: { install: false } }] }
    const key = async () =>
      (await list('secrets')).find(({ data }) => data?.['owner-keys'])!.data['owner-keys']
    await helmOk(older, ['install', 'p', chart], options)
    const first = await key()
    await helmOk(older, ['upgrade', 'p', chart], options)
    expect(await key()).to.equal(first)
    await helmOk(older, ['uninstall', 'p'], { namespace: ns })
  })
})

/** Without a key that each rendering makes anew. */
function comparable(manifest: Manifest): Manifest {
  return manifest.kind === 'Secret' ? { ...manifest, data: Object.keys(manifest.data) } : manifest
}
