import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { StatesFollower } from '../../../operator/admin/states-follower.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'

describe('the follower of the states of buffers', () => {
  let follower: StatesFollower
  /** Keys that are followed: their requests wait at the service. */
  let followed: string[]

  beforeEach(() => {
    followed = []
    follower = new StatesFollower({
      admin: {
        states(key, _query, signal) {
          followed.push(key)
          return new Promise((_resolve, reject) =>
            signal.addEventListener('abort', () => reject(signal.reason)),
          )
        },
      },
      clock: new ManualClock(),
      randomness: { fraction: () => 0 },
      log: { debug: () => {} },
      onTold: () => {},
    })
  })

  afterEach(() => follower.close())

  it('leaves room for the keys of other namespaces, however many one has', () => {
    for (let index = 0; index < 10_000; index++) follower.use(`bad/${index}`, `bad-key-${index}`)
    const ofBad = followed.length
    follower.use('good/orders', 'good-key')
    expect(followed.slice(ofBad)).to.deep.equal(['good-key'])
    expect(ofBad).to.equal(250)
    for (let namespace = 0; namespace < 1_000; namespace++)
      for (let index = 0; index < 10; index++)
        follower.use(`bad-${namespace}/${index}`, `bad-key-${namespace}-${index}`)
    expect(followed.length).to.equal(500)
  })

  it('follows a key once for all resources of it, and no more when none uses it', () => {
    follower.use('one/a', 'key')
    follower.use('two/b', 'key')
    expect(followed).to.deep.equal(['key'])
    follower.use('one/a', undefined)
    follower.use('two/b', undefined)
    follower.use('one/a', 'key')
    expect(followed).to.deep.equal(['key', 'key'])
  })
})
