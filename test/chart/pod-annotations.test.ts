/** Annotations of pods that values add: none is there twice. */
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { type Kube, kubeOrSkip } from '../kube/kube.ts'
import { leastCluster, podsOf, refusedAs, render } from './helm.ts'

const DEFAULT_CONTAINER = 'kubectl.kubernetes.io/default-container'

describe('annotations that values give to pods', function () {
  this.timeout(120_000)
  let cluster: Kube
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
  })

  it('name no second default container, but in pods that have none', async () => {
    const podAnnotations = { [DEFAULT_CONTAINER]: 'mine' }
    for (const role of ['ingress', 'admin', 'actor', 'operator', 'local']) {
      await refusedAs(
        cluster,
        [leastCluster, { [role]: { podAnnotations } }],
        `'/${role}/podAnnotations/${DEFAULT_CONTAINER.replace('/', '~1')}'`,
      )
    }
    const hooks = { ownerKeysSecret: { name: 'keys' }, migrate: { podAnnotations }, test: { podAnnotations } }
    const pods = podsOf(await render(cluster, [leastCluster, hooks]))
    for (const name of ['Job/p-penstock-migrate', 'Pod/p-penstock-test']) {
      expect(pods.get(name).metadata.annotations, name).to.include(podAnnotations)
    }
  })
})
