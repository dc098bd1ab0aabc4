/** An upgrade from the chart and the image of the release before, and the ways back, while webhooks come. */
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { afterEach, before, describe, it } from 'mocha'
import type { Manifest } from '../chart/helm.ts'
import { eventually } from '../support/eventually.ts'
import { EARLIER_TAG, earlierRelease } from './earlier.ts'
import { Place } from './place.ts'
import { node } from './real-node.ts'
import { Sender } from './sender.ts'
import { startStores, storeValues } from './stores.ts'

const INGRESS = 'p-penstock-ingress'
const ADMIN = 'p-penstock-admin'
const DEFINITION = 'buffers.buffering.penstock.dev'
const KEY = `svk_${randomBytes(24).toString('hex')}`

describe('an upgrade from the release before', () => {
  let place: Place
  let earlier: string
  before(async function () {
    this.timeout(1_800_000)
    const found = await earlierRelease()
    if (found === undefined) return this.skip()
    earlier = found
    place = await Place.make(await node(), 'upgrade')
    // The chart brings its own, and another release of this node may have left it behind.
    await place.kubectl('delete', 'crd', DEFINITION, '--ignore-not-found', '--timeout=60s')
    await startStores(place, KEY)
  })
  afterEach(async function () {
    if (this.currentTest?.state === 'failed') await place.tellAll()
  })

  it('begins with an install of that release', async () => {
    await place.installFrom(earlier, { ...storeValues, image: { tag: EARLIER_TAG } })
    expect(new Set(await images())).to.deep.equal(new Set([`penstock:${EARLIER_TAG}`]))
    await place.makeProject(ADMIN, KEY)
    await place.makeBuffer(KEY, { idleTimeoutMs: 500 })
  })

  it('refuses, loses and repeats nothing', async () => {
    await underLoad('upgraded', () => place.upgrade({ image: { tag: '' } }))
    expect(await images()).not.to.include(`penstock:${EARLIER_TAG}`)
    await place.kubectl('wait', 'buffer', '--all', '--for=condition=Ready', '--timeout=60s')
  })

  it('refuses, loses and repeats nothing on the way back to values that were before', async () => {
    await place.upgrade({ config: { initialCredits: 200_000 } })
    await underLoad('rolled-back', () => place.rollback())
    expect(await setting('PENSTOCK_INITIAL_CREDITS')).to.equal('100000')
  })

  it('goes on when a rollback brings programs that refuse the newer schema, and comes forward again', async () => {
    await underLoad('back-and-forth', async () => {
      await place.rollback({ revision: 1, wait: false })
      await eventually(startsOfEarlier, { timeoutMs: 180_000, everyMs: 500 })
      await place.upgrade({ image: { tag: '' } })
    })
    expect(await images()).not.to.include(`penstock:${EARLIER_TAG}`)
  })

  it('ends with an uninstall that leaves the definition of Buffers', async () => {
    expect(await place.deleteBuffer(ADMIN, KEY)).to.equal(404)
    expect(await place.uninstall()).to.deep.equal([])
    await place.kubectl('delete', 'crd', DEFINITION, '--timeout=60s')
  })

  async function underLoad(name: string, change: () => Promise<unknown>): Promise<void> {
    const sender = new Sender(await place.ingestUrl(INGRESS), name)
    await sender.during(change)
    await place.judge(sender)
  }

  /** Whether each role that needs the database has a container of the release before that ended. */
  async function startsOfEarlier(): Promise<void> {
    for (const role of ['ingress', 'admin', 'actor']) {
      const ended = (await place.pods(role)).filter(
        (pod) =>
          imageOf(pod) === `penstock:${EARLIER_TAG}` && pod.status.containerStatuses?.[0]?.restartCount > 0,
      )
      expect(ended, role).not.to.deep.equal([])
    }
  }

  /** Of the pods that run and stay; those that end or have ended are listed for a while. */
  async function images(): Promise<string[]> {
    const pods = await place.list('pods')
    const ours = pods.filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/instance'] === 'p')
    const stay = ours.filter((pod) => pod.status.phase === 'Running' && !pod.metadata.deletionTimestamp)
    return stay.map(imageOf)
  }

  function imageOf(pod: Manifest): string {
    return pod.spec.containers[0].image
  }

  function setting(name: string): Promise<string> {
    return place.kubectl('get', 'configmap', 'p-penstock-config', '-o', `jsonpath={.data.${name}}`)
  }
})
