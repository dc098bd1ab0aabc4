/** The whole set of values on the chart's page, installed as it stands where every node has the taint that it names. */
import { expect } from 'chai'
import { after, before, describe, it } from 'mocha'
import { type Kube, kubectlOk, namespace, start, stopKube } from '../kube/kube.ts'
import { chart, helm, helmOk, leastCluster, type Manifest, nameOf, valuesOfThePage } from './helm.ts'

// A cluster of its own, because of the taints.
describe("the values on the chart's page", function () {
  this.timeout(180_000)
  let cluster: Kube
  before(async function () {
    const started = await start({ parts: 'controller-manager scheduler kwok' })
    if (started === undefined) return this.skip()
    cluster = started
    await kubectlOk(cluster, ['taint', 'nodes', '--all', 'dedicated=penstock:NoSchedule'])
    await kubectlOk(cluster, ['label', 'nodes', '--all', 'pool=penstock'])
  })
  after(async () => {
    if (cluster) await stopKube(cluster)
  })

  it('bring up all pods on nodes with taints, those of hooks too, and expose both roles on one host', async () => {
    const ns = await namespace(cluster, 'platform')
    const options = { namespace: ns, values: [valuesOfThePage()] }
    const notes = await helmOk(
      cluster,
      ['install', 'penstock', chart, '--wait', '--timeout', '120s'],
      options,
    )
    expect(notes).to.include(
      'webhooks         https://hooks.example.com\n  management API   https://hooks.example.com',
    )
    await helmOk(cluster, ['test', 'penstock', '--timeout', '60s'], { namespace: ns })
    const list = async (kinds: string): Promise<Manifest[]> =>
      JSON.parse(await kubectlOk(cluster, ['-n', ns, 'get', kinds, '-o', 'json'])).items
    const ways = (await list('ingresses')).map((each) => [
      nameOf(each),
      each.spec.rules[0].http.paths[0].path,
    ])
    expect(Object.fromEntries(ways)).to.deep.equal({
      'Ingress/penstock-admin': '/',
      'Ingress/penstock-ingress': '/v1/ingest',
    })
    for (const { metadata } of await list('deployments,services,configmaps,networkpolicies,pods')) {
      if (metadata.name !== 'kube-root-ca.crt')
        expect(metadata.labels.team, metadata.name).to.equal('platform')
    }
    for (const { metadata } of (await list('deployments')).filter(
      ({ metadata }) => !/operator/.test(metadata.name),
    ))
      expect(metadata.annotations['secret.reloader.stakater.com/reload'], metadata.name).to.include(
        'penstock-keys',
      )
  })

  it('are needed there: without them no pod starts', async () => {
    const ns = await namespace(cluster, 'platform')
    const values = [leastCluster, { crds: { install: false }, migrate: { activeDeadlineSeconds: 3 } }]
    const { code, stderr } = await helm(cluster, ['install', 'bare', chart], { namespace: ns, values })
    expect({ code, stderr }, stderr).to.include({ code: 1 })
    expect(stderr).to.include('failed pre-install')
  })
})
