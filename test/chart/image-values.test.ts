/** The image that values name is a reference that a node can pull. */
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { type Kube, kubeOrSkip } from '../kube/kube.ts'
import { leastCluster, podsOf, refusedAs, render, type Values } from './helm.ts'

describe('the image that values name', function () {
  this.timeout(120_000)
  let cluster: Kube
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
  })

  const imageOf = async (image: Values): Promise<string> => {
    const pods = podsOf(await render(cluster, [leastCluster, { image }]))
    return pods.get('Deployment/p-penstock-ingress').spec.containers[0].image
  }

  for (const repository of [
    ...['penstock:1.2', 'registry.example:5000/a:1', 'registry.example:x/a', 'registry.example:5000'],
    ...[
      'Foo/Bar',
      'Penstock',
      'a/B',
      'a//b..c',
      'a//b',
      'a/b..c',
      'a___b',
      'a/-b',
      'a/b-',
      '.a',
      '-a.b/c',
      '/a',
    ],
    ...['a/', 'a@b', `penstock@sha256:${'a'.repeat(64)}`, 'a b', 'a\nb', ''],
  ]) {
    it(`no repository of an image: ${JSON.stringify(repository)}`, () =>
      refusedAs(cluster, [leastCluster, { image: { repository } }], "'/image/repository'"))
  }

  for (const registry of ['r..example', 'r.', 'r-', 'r/..', 'r/a..b', 'r/-a', 'r:5000/', 'r/A', 'r:x']) {
    it(`no registry: ${registry}`, () =>
      refusedAs(cluster, [leastCluster, { image: { registry } }], "'/image/registry'"))
  }

  it('refuses a second registry with a port behind the first', async () => {
    const image = { registry: 'mirror.example', repository: 'registry.example:5000/a/b' }
    await refusedAs(cluster, [leastCluster, { image }], "'/image/repository'")
  })

  it('takes a registry with a port, and every separator within a path', async () => {
    for (const repository of [
      ...['registry.example:5000/a/b', 'localhost:5000/a', 'Registry.Example/a', '[fd00::1]:5000/a'],
      ...['a', 'a/b/c', 'a.b_c__d--e/0', '192.0.2.1:5000/a', 'registry.example/team/penstock'],
    ]) {
      expect(await imageOf({ repository })).to.equal(`${repository}:0.1.0`)
    }
    for (const registry of ['localhost:5000', 'mirror.example/a_b/c', 'r', '[fd00::1]:5000']) {
      const repository = 'docker.io/team/penstock'
      expect(await imageOf({ registry, repository })).to.equal(`${registry}/${repository}:0.1.0`)
    }
  })
})
