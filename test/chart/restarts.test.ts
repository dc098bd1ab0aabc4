/** Patches of values start pods anew when they change what the pods read at their start. */
import { expect } from 'chai'
import { before, describe, it } from 'mocha'
import { type Kube, kubeOrSkip } from '../kube/kube.ts'
import { leastCluster, leastLocal, podsOf, render, type Values } from './helm.ts'

const catalog: Values = { config: { catalog: { plans: [] } } }
const data = { merge: { data: { A: 'b' } } }
const patch = { patch: [{ op: 'add', path: '/data/A', value: 'b' }] }
const label = { merge: { metadata: { labels: { mine: 'yes' } } } }

describe('the checksum that starts pods anew', function () {
  this.timeout(120_000)
  let cluster: Kube
  before(async function () {
    this.timeout(120_000)
    cluster = await kubeOrSkip(this)
  })

  /** That of all pods that read the settings: they have the same one. */
  const checksum = async (...values: Values[]): Promise<string> => {
    const pods = [...podsOf(await render(cluster, values)).values()]
    const sums = pods.flatMap(({ metadata }) => metadata.annotations?.['checksum/config'] ?? [])
    const [sum, ...others] = new Set<string>(sums)
    expect(sum).to.match(/^[0-9a-f]{64}$/)
    expect(others).to.deep.equal([])
    return sum!
  }

  for (const [mode, least] of Object.entries({ cluster: leastCluster, local: leastLocal })) {
    it(`follows the settings as they are patched: ${mode}`, async () => {
      const plain = await checksum(least)
      const changed = await checksum(least, { configMap: data })
      expect(changed).not.to.equal(plain)
      expect(await checksum(least, { configMap: patch })).to.equal(changed)
      const other = await checksum(least, { configMap: { merge: { data: { A: 'c' } } } })
      expect(other).not.to.be.oneOf([plain, changed])
    })

    it(`follows the catalog as it is patched, by text or by bytes: ${mode}`, async () => {
      const sums = [await checksum(least, catalog)]
      for (const merge of [data.merge, { binaryData: { more: 'e30=' } }, { data: null }]) {
        const sum = await checksum(least, catalog, { catalogConfigMap: { merge } })
        expect(sum).not.to.be.oneOf(sums)
        sums.push(sum)
      }
      expect(await checksum(least, catalog, { catalogConfigMap: patch })).to.equal(sums[1])
    })
  }

  it('stays when a patch changes nothing that pods read', async () => {
    const plain = await checksum(leastCluster, catalog)
    for (const change of [{ configMap: label }, { catalogConfigMap: label }]) {
      expect(await checksum(leastCluster, catalog, change)).to.equal(plain)
    }
    // Without a catalog no such object is made.
    expect(await checksum(leastCluster, { catalogConfigMap: data })).to.equal(await checksum(leastCluster))
  })
})
