/** The ways in from outside of the cluster, as they are rendered; the API server judges them among all other objects. */
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { type Kube, kubeOrSkip } from '../kube/kube.ts'
import { leastCluster, leastLocal, type Manifest, nameOf, render, type Values } from './helm.ts'
import { exposed } from './matrix.ts'

const HOSTS = ['hooks.example.com', '*.hooks.example.org']

describe('the ways in from outside of the cluster', function () {
  this.timeout(120_000)
  let cluster: Kube
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
  })

  const specs = async (...values: Values[]): Promise<Record<string, Manifest>> => {
    const ways = (await render(cluster, values)).filter(({ kind }) => /^(Ingress|HTTPRoute)$/.test(kind))
    return Object.fromEntries(ways.map((each) => [nameOf(each), each.spec]))
  }

  it('are none by default', async () => {
    expect(await specs(leastCluster)).to.deep.equal({})
    expect(await specs(leastLocal)).to.deep.equal({})
  })

  for (const [role, path] of Object.entries({ ingress: '/v1/ingest', admin: '/', local: '/' })) {
    it(`lead to the paths of its role, on each host: ${role}`, async () => {
      const least = role === 'local' ? leastLocal : leastCluster
      const made = await specs(least, exposed('ingress', 'admin', 'local'))
      const name = `p-penstock-${role}`
      const service = { name, port: { name: 'http' } }
      expect(made[`Ingress/${name}`]).to.deep.equal({
        ingressClassName: 'nginx',
        rules: HOSTS.map((host) => ({
          host,
          http: { paths: [{ path, pathType: 'Prefix', backend: { service } }] },
        })),
        tls: [{ hosts: HOSTS, secretName: 'tls' }, { hosts: [HOSTS[0]] }],
      })
      expect(made[`HTTPRoute/${name}`]).to.deep.equal({
        parentRefs: [{ name: 'edge', namespace: 'gw' }],
        hostnames: HOSTS,
        rules: [
          { matches: [{ path: { type: 'PathPrefix', value: path } }], backendRefs: [{ name, port: 80 }] },
        ],
      })
    })
  }

  it('take any host where the values name none', async () => {
    const parentRefs = [{ name: 'edge' }]
    const expose = { ingress: { enabled: true }, httpRoute: { enabled: true, parentRefs } }
    const made = await specs(leastCluster, { admin: { expose } })
    expect(Object.keys(made)).to.have.members(['Ingress/p-penstock-admin', 'HTTPRoute/p-penstock-admin'])
    expect(made['Ingress/p-penstock-admin'].rules[0]).not.to.have.property('host')
    expect(made['Ingress/p-penstock-admin']).not.to.have.any.keys('ingressClassName', 'tls')
    expect(made['HTTPRoute/p-penstock-admin']).not.to.have.property('hostnames')
  })
})
