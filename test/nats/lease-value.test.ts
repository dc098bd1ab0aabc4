import { expect } from 'chai'
import { describe, it } from 'mocha'
import {
  ascending,
  decodeLease,
  encodeLease,
  unreadableLease,
} from '../../internal/nats/leases/lease-value.ts'
import { leaseOf } from './lease-members.ts'

const BOOT = '5a0c7bb2-6d5c-4c60-a2d1-1f7b6c3f9e10'
const mark = { writer: 'w', beat: 7 }
const fields = () => JSON.parse(Buffer.from(encodeLease(leaseOf(BOOT, [1, 4]), mark)).toString())
const read = (value: unknown) => decodeLease(Buffer.from(JSON.stringify(value)), BOOT)

describe('the value of a lease', () => {
  it('is read as it was written', () => {
    const lease = leaseOf(BOOT, [1, 4])
    expect(decodeLease(encodeLease(lease, mark), BOOT)).to.deep.equal({ lease, mark })
  })

  it('may come from a newer version: what is not known is left out', () => {
    const value = { ...fields(), v: 2, zone: 'b', installation: { shards: 8, serializer: 1, more: true } }
    expect(read(value)).to.deep.equal({ lease: leaseOf(BOOT, [1, 4]), mark })
  })

  it('may come from an earlier version, which does not say whether it takes webhooks, or say more of that', () => {
    const { webhooks, ...earlier } = fields()
    expect(webhooks).to.equal('none')
    expect(read(earlier)).to.deep.equal({ lease: leaseOf(BOOT, [1, 4]), mark })
    expect(read({ ...earlier, webhooks: 'ending' })).to.deep.include({
      lease: { ...leaseOf(BOOT, [1, 4]), webhooks: 'ending' },
    })
    expect(read({ ...earlier, webhooks: 'some' })).to.deep.equal({ lease: leaseOf(BOOT, [1, 4]), mark })
  })

  const broken: [string, object, string][] = [
    ['a version', { v: 0 }, 'v is 0'],
    ['another boot', { boot: 'b' }, 'boot is "b"'],
    ['a role', { role: 'king' }, 'role is "king"'],
    ['a node', { node: 7 }, 'node is 7'],
    ['shards', { shards: [1, -1] }, 'shards is [1,-1]'],
    ['no shards', { shards: null }, 'shards is null'],
    ['accepting', { accepting: 'yes' }, 'accepting is "yes"'],
    ['no installation', { installation: [] }, 'installation.shards is undefined'],
    ['a serializer', { installation: { shards: 1, serializer: 1.5 } }, 'installation.serializer is 1.5'],
    ['a program version', { version: {} }, 'version is {}'],
    ['a time', { since: '2026' }, 'since is "2026"'],
  ]
  for (const [what, change, fault] of broken) {
    it(`names what cannot be read: ${what}`, () => {
      expect(read({ ...fields(), ...change })).to.deep.equal({ fault, mark })
    })
  }

  it('may be no object at all', () => {
    expect(decodeLease(Buffer.from('{'), BOOT)).to.deep.equal({ fault: 'not JSON' })
    expect(decodeLease(new Uint8Array(), BOOT)).to.deep.equal({ fault: 'not JSON' })
    for (const value of [null, [], 7, 'x']) expect(read(value)).to.deep.equal({ fault: 'not an object' })
  })

  it('has no mark when it does not say who wrote it', () => {
    expect(read({ ...fields(), writer: 1 })).to.deep.equal({ lease: leaseOf(BOOT, [1, 4]) })
  })

  it('lists shards ascending, each once', () => {
    expect(ascending([10, 9, 2, 10])).to.deep.equal([2, 9, 10])
    expect(read({ ...fields(), shards: [4, 1, 1] })).to.deep.include({ lease: leaseOf(BOOT, [1, 4]) })
  })

  it('that cannot be read stands for a process on which nothing is placed', () => {
    expect(unreadableLease(BOOT)).to.deep.include({ boot: BOOT, role: 'admin', shards: [], accepting: false })
  })
})
