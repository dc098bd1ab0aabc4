/** Which Kubernetes the chart promises: the oldest one that tests run on, on every page that says so. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { type Kube, kubeOrSkip, OLDEST } from '../kube/kube.ts'
import { chart, helm, leastCluster } from './helm.ts'

const root = join(import.meta.dirname, '..', '..')
const MINOR = Number(OLDEST.split('.')[1])

describe('the promised versions of Kubernetes', () => {
  let cluster: Kube
  before(async function () {
    cluster = await kubeOrSkip(this)
  })

  for (const page of ['charts/penstock/README.md', 'docs/guide/kubernetes.md'])
    it(`begin with the oldest one that is tested: ${page}`, () => {
      const said = [...readFileSync(join(root, page), 'utf8').matchAll(/Kubernetes (1\.\d+) or/g)]
      expect(said.map(([, version]) => version)).to.deep.equal([OLDEST])
    })

  it('are taken by helm, and older ones are refused', async () => {
    const rendered = (minor: number) =>
      helm(cluster, ['template', 'p', chart, '--kube-version', `1.${minor}.0`], { values: [leastCluster] })
    expect((await rendered(MINOR)).code).to.equal(0)
    const { code, stderr } = await rendered(MINOR - 1)
    expect(code).not.to.equal(0)
    expect(stderr).to.include('which is incompatible with Kubernetes')
  })
})
