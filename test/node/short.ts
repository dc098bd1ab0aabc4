/** The least that has to hold on the oldest Kubernetes that the chart promises: install, a Buffer, a webhook, uninstall. */
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { afterEach, before, describe, it } from 'mocha'
import { kubectlOk, OLDEST } from '../kube/kube.ts'
import { Place } from './place.ts'
import { node } from './real-node.ts'
import { Sender } from './sender.ts'
import { startStores, storeValues } from './stores.ts'

const KEY = `svk_${randomBytes(24).toString('hex')}`

describe(`a cluster of pods on Kubernetes ${OLDEST}`, () => {
  let place: Place
  before(async function () {
    this.timeout(1_800_000)
    place = await Place.make(await node(), 'short')
    await startStores(place, KEY)
  })
  afterEach(async function () {
    if (this.currentTest?.state === 'failed') await place.tellAll()
  })

  it('behaves like that version', async () => {
    const version = JSON.parse(await kubectlOk(place.cluster, ['get', '--raw', '/version']))
    expect(`${version.emulationMajor}.${version.emulationMinor}`).to.equal(OLDEST)
  })

  it('is installed, with the definition of Buffers', async () => {
    await place.install(storeValues)
  })

  it('makes a buffer of a resource, and delivers a webhook', async () => {
    await place.makeProject('p-penstock-admin', KEY)
    await place.makeBuffer(KEY, { idleTimeoutMs: 500 })
    const sender = new Sender(await place.ingestUrl('p-penstock-ingress'), 'first')
    await sender.send('ada', 0)
    await place.judge(sender)
  })

  it('goes with an uninstall', async () => {
    expect(await place.deleteBuffer('p-penstock-admin', KEY)).to.equal(404)
    expect(await place.uninstall()).to.deep.equal([])
  })
})
