import { expect } from 'chai'
import { describe, it } from 'mocha'
import { BufferIdClaims, TRY_MS } from '../../../operator/reconcile/buffer-id-claims.ts'
import { bufferIdOf } from '../../../operator/reconcile/desired-buffer.ts'
import { type BufferResource, UNMANAGED_ANNOTATION } from '../../../operator/resource.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { CLAIMED, type Given, resource, SYNCED } from './fixtures.ts'

/** As soon as a resource that has a rival looks again, ms. */
const AGAIN_MS = 30_000

function fixture() {
  const clock = new ManualClock()
  const resources = new Map<string, BufferResource>()
  const claims = new BufferIdClaims(
    {
      get: (key) => resources.get(key),
      list: () => [...resources.values()],
      byIndex: (_index, id) => [...resources.values()].filter((each) => bufferIdOf(each) === id),
    },
    clock,
  )
  /** A resource of its own namespace that names the buffer `orders`, or what has become of it. */
  const put = (namespace: string, more: Given = {}): BufferResource => {
    const made = resource({ ...more, metadata: { namespace, uid: `uid-of-${namespace}`, ...more.metadata } })
    resources.set(`${namespace}/orders`, made)
    return made
  }
  /** Who comes before the resource when it contends. */
  const contend = (each: BufferResource) => claims.contend(each)?.name
  return { clock, claims, contend, put, resources }
}

describe('claims on a buffer', () => {
  it('are of the first that contends, and end with it', () => {
    const { claims, contend, put } = fixture()
    const [one, two] = [put('one'), put('two')]
    expect([contend(one), contend(two), contend(one)]).to.deep.equal([undefined, 'one/orders', undefined])
    claims.release('orders', one.metadata.uid)
    expect([contend(two), contend(one)]).to.deep.equal([undefined, 'two/orders'])
  })

  it('stand for good once the service has shown the buffer to the resource', () => {
    const { clock, claims, contend, put } = fixture()
    const [one, two] = [put('one'), put('two')]
    contend(one)
    claims.confirm(one)
    clock.advance(1_000 * TRY_MS)
    expect(contend(two), 'the status is not in the store yet').to.equal('one/orders')
    const synced = put('one', { status: SYNCED })
    for (const paused of [synced, put('one', { status: SYNCED, metadata: { annotations: PAUSED } })]) {
      claims.lapse(paused)
      expect(contend(two)).to.equal('one/orders')
    }
  })

  it('stand for good where an earlier process was shown it', () => {
    const { clock, contend, put } = fixture()
    put('one', { status: SYNCED })
    const two = put('two', { status: CLAIMED })
    clock.advance(1_000 * TRY_MS)
    expect(contend(two), 'although it has an intent itself').to.equal('one/orders')
  })

  it('that are not confirmed go to who waits after a minute, and not back', () => {
    const { clock, contend, put } = fixture()
    const one = put('one')
    contend(one)
    put('one', { status: CLAIMED })
    const two = put('two')
    for (const expected of ['one/orders', 'one/orders', undefined]) {
      expect(contend(two)).to.equal(expected)
      clock.advance(AGAIN_MS)
      // It tries all the time.
      for (let pass = 0; pass < 3; pass++) contend(put('one', { status: CLAIMED }))
    }
    expect(contend(put('one', { status: CLAIMED }))).to.equal('two/orders')
  })

  it('are no shorter than a pass that runs', () => {
    const { clock, claims, contend, put } = fixture()
    const [one, two] = [put('one'), put('two')]
    contend(one)
    claims.begin(one)
    clock.advance(2 * TRY_MS)
    expect([contend(two), claims.rivalOf(one)]).to.deep.equal(['one/orders', undefined])
    claims.confirm(one)
    claims.end(one)
    clock.advance(2 * TRY_MS)
    expect(contend(two)).to.equal('one/orders')
  })

  it('end at once with one that does not try any more', () => {
    const { claims, contend, put } = fixture()
    contend(put('one'))
    const [one, two] = [put('one', { status: CLAIMED }), put('two')]
    claims.lapse(one)
    expect(contend(two)).to.equal(undefined)
    expect(contend(one)).to.equal('two/orders')
  })

  it('of an earlier process get a minute, unless they are paused', () => {
    const { clock, contend, put } = fixture()
    put('one', { status: CLAIMED })
    const two = put('two')
    expect(contend(two)).to.equal('one/orders')
    clock.advance(TRY_MS)
    expect(contend(two)).to.equal(undefined)

    const other = fixture()
    other.put('one', { status: CLAIMED, metadata: { annotations: PAUSED } })
    expect(other.contend(other.put('two'))).to.equal(undefined)
  })

  it('go around the namespaces that want the buffer, however many resources one has', () => {
    const { clock, contend, put, resources } = fixture()
    const greedy = Array.from({ length: 20 }, (_, index) => {
      const made = put('greedy', {
        metadata: { uid: `uid-${index}`, name: `greedy-${index}` },
        spec: { bufferId: 'orders' },
      })
      resources.set(`greedy/${index}`, made)
      return made
    })
    contend(greedy[0]!)
    const good = put('good')
    let waitedMs = 0
    while (contend(good) !== undefined) {
      clock.advance(AGAIN_MS)
      waitedMs += AGAIN_MS
      expect(waitedMs).to.be.below(3 * TRY_MS)
      for (const each of greedy) contend(each)
    }
  })

  it('are not waited for by one that does not ask any more', () => {
    const { clock, contend, put } = fixture()
    const [one, two] = [put('one'), put('two')]
    contend(one)
    contend(two)
    clock.advance(TRY_MS)
    expect(contend(one)).to.equal('two/orders')
    clock.advance(TRY_MS)
    expect(contend(one)).to.equal(undefined)
  })

  it('are of one resource at a time, whatever happens', () => {
    const { clock, claims, contend, put } = fixture()
    const holders = new Map<string, BufferResource>()
    for (let step = 0; step < 2_000; step++) {
      const namespace = `ns-${(step * 7919) % 5}`
      const status = step % 3 === 0 ? CLAIMED : undefined
      const each = put(namespace, status === undefined ? {} : { status })
      if (contend(each) === undefined) {
        claims.begin(each)
        holders.set(namespace, each)
      }
      // What has the claim by its own account and runs has no rival; so there is one at most.
      const sure = [...holders.values()].filter((holder) => claims.rivalOf(holder) === undefined)
      expect(sure.length, `step ${step}`).to.be.at.most(1)
      if (step % 4 === 3) {
        for (const holder of holders.values()) claims.end(holder)
        holders.clear()
      }
      clock.advance((step * 104_729) % 40_000)
    }
  })
})

const PAUSED = { [UNMANAGED_ANNOTATION]: 'true' }
