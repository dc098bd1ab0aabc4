/** The chart's values for one machine, in real pods. */
import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { afterEach, before, describe, it } from 'mocha'
import { valuesFile } from '../chart/helm.ts'
import { Place, SERVICE_ADDRESSES } from './place.ts'
import { node } from './real-node.ts'
import { deliveredAll, repeated, twoBodies } from './receiver.ts'
import { Sender } from './sender.ts'

const SERVICE = 'p-penstock-local'
const POD = 'p-penstock-local-0'

describe('one pod with servers of its own', () => {
  let place: Place
  let key: string
  before(async function () {
    this.timeout(1_800_000)
    place = await Place.make(await node(), 'local')
    await giveVolume()
  })
  afterEach(async function () {
    if (this.currentTest?.state === 'failed') await place.tellAll()
  })

  it('is installed', async () => {
    await place.install(valuesFile('local'), { config: { allowDestinations: [SERVICE_ADDRESSES] } })
  })

  it('makes a buffer of a resource, with the key that the chart made', async () => {
    const pair = await place.kubectl('get', 'secret', 'p-penstock-owner-keys', '-o', 'jsonpath={.data.*}')
    key = Buffer.from(pair, 'base64').toString().split('=')[1]!
    await place.makeProject(SERVICE, key)
    // What comes now is still buffered when the pod ends.
    await place.makeBuffer(key, { idleTimeoutMs: 20_000, maxWaitFromFirstMs: 30_000 })
  })

  it('delivers what it held when its pod was ended without grace', async () => {
    const sender = new Sender(await place.ingestUrl(SERVICE), 'held')
    for (let n = 0; n < 30; n++) await sender.send(`customer-${n % 3}`, n)
    const [{ metadata }] = (await place.pods('local')) as [{ metadata: { uid: string } }]
    await place.kubectl('delete', 'pod', POD, '--force', '--grace-period=0')
    await place.kubectl('wait', `pod/${POD}`, '--for=condition=Ready', '--timeout=180s')
    const [replaced] = (await place.pods('local')) as [{ metadata: { uid: string } }]
    expect(replaced.metadata.uid).not.to.equal(metadata.uid)
    const delivered = await deliveredAll(await place.url('receiver'), sender.accepted)
    expect(twoBodies(delivered)).to.deep.equal([])
    expect(repeated(delivered)).to.deep.equal([])
  })

  it('passes helm test', () => place.test())

  it('had no container that ended by itself, but for one that found the data folder in use', async () => {
    const ended = await place.restarts()
    // Without grace the next pod is made while the one before still ends: two must not have the folder.
    const said = ended.length > 0 ? await place.kubectl('logs', POD, '--previous') : ''
    const others = ended.filter((each) => !(each.startsWith(`${POD}:`) && said.includes('is in use by')))
    expect(others, said).to.deep.equal([])
  })

  it('takes the buffer away with its resource', async () => {
    expect(await place.deleteBuffer(SERVICE, key)).to.equal(404)
  })

  it('goes with an uninstall, but for its volume', async () => {
    expect(await place.uninstall()).to.deep.equal(['PersistentVolumeClaim/data-p-penstock-local-0'])
  })

  /** What a provisioner would do. */
  async function giveVolume(): Promise<void> {
    const path = join(place.cluster.dir, 'volume')
    mkdirSync(path)
    chmodSync(path, 0o755)
    const [{ metadata }] = JSON.parse(await place.kubectl('get', 'nodes', '-o', 'json')).items
    const hostname = { key: 'kubernetes.io/hostname', operator: 'In', values: [metadata.name] }
    await place.apply({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'local-data' },
      spec: {
        capacity: { storage: '8Gi' },
        accessModes: ['ReadWriteOnce'],
        local: { path },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [hostname] }] } },
      },
    })
  }
})
