import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import type { Log } from '../../../internal/shard/broker.ts'
import { encodeCommit, encodeRecord } from '../../../internal/shard/journal/codec.ts'
import type { JournalRecord } from '../../../internal/shard/journal/records.ts'
import { Claims } from '../../../internal/shard/ownership/claims.ts'
import type { Lease, Membership } from '../../../internal/shard/ownership/membership.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'

const TTL_MS = 5_000
const SHARD = 3
const [OWN, OWNER, OTHER] = [1, 2, 3].map((n) => `00000000-0000-4000-8000-00000000000${n}`) as [
  string,
  string,
  string,
]

describe('who may claim a shard', () => {
  let clock: ManualClock
  let claims: Claims
  let last: Uint8Array | undefined
  /** What each boot with a lease lists. */
  let listed: Map<string, number[]>
  let gone: Set<string>
  let over: Set<string>

  beforeEach(() => {
    clock = new ManualClock()
    listed = new Map()
    gone = new Set()
    over = new Set()
    last = commitBy(OWNER)
    const message = () => last && { seq: 1, at: 0, data: last, msgId: null }
    const journal: Partial<Log> = { last: async () => message() }
    const membership: Pick<Membership, 'ttlMs' | 'leases' | 'isGone'> = {
      ttlMs: TTL_MS,
      leases: () => [...listed].map(([boot, shards]) => ({ boot, shards }) as unknown as Lease),
      isGone: (boot) => gone.has(boot),
    }
    claims = new Claims({
      boot: OWN,
      clock,
      broker: { journal: () => journal as Log },
      membership: membership as Membership,
      isOver: (boot) => over.has(boot),
    })
  })

  const mayClaim = () => claims.mayClaim(SHARD)

  it('is anybody while its journal is empty, or ends in a release', async () => {
    last = undefined
    expect(await mayClaim()).to.equal(true)
    last = commitBy(OWNER, { type: 'release', batches: [] })
    expect(await mayClaim()).to.equal(true)
  })

  it('is anybody when its owner is this boot, is over, or holds no lease', async () => {
    expect(await mayClaim()).to.equal(false)
    last = commitBy(OWN)
    expect(await mayClaim()).to.equal(true)
    last = commitBy(OWNER)
    over.add(OWNER)
    expect(await mayClaim()).to.equal(true)
    over.clear()
    gone.add(OWNER)
    expect(await mayClaim()).to.equal(true)
  })

  it('is anybody once the lease of its owner has not listed it for a TTL', async () => {
    listed.set(OWNER, [SHARD + 1])
    expect(await mayClaim()).to.equal(false)
    clock.advance(TTL_MS - 1)
    expect(await mayClaim()).to.equal(false)
    clock.advance(1)
    expect(await mayClaim()).to.equal(true)
  })

  it('is nobody else for another TTL when its owner has listed it again', async () => {
    listed.set(OWNER, [])
    expect(await mayClaim()).to.equal(false)
    clock.advance(TTL_MS - 1)
    listed.set(OWNER, [SHARD])
    expect(await mayClaim()).to.equal(false)
    listed.set(OWNER, [])
    clock.advance(1)
    expect(await mayClaim()).to.equal(false)
    clock.advance(TTL_MS)
    expect(await mayClaim()).to.equal(true)
  })

  it('counts the TTL of each owner by itself', async () => {
    listed.set(OWNER, []).set(OTHER, [])
    expect(await mayClaim()).to.equal(false)
    clock.advance(TTL_MS)
    last = commitBy(OTHER)
    expect(await mayClaim()).to.equal(false)
    clock.advance(TTL_MS)
    expect(await mayClaim()).to.equal(true)
  })

  it('is anybody a TTL after a lease listed it when its last commit cannot be read', async () => {
    last = Buffer.from([255])
    listed.set(OTHER, [SHARD])
    expect(await mayClaim()).to.equal(false)
    listed.clear()
    expect(await mayClaim()).to.equal(false)
    // The own lease says only what this node wants.
    listed.set(OWN, [SHARD])
    clock.advance(TTL_MS)
    expect(await mayClaim()).to.equal(true)
  })
})

function commitBy(boot: string, ...records: JournalRecord[]): Buffer {
  return encodeCommit({ boot, epoch: 1, at: 0, highWater: null }, records.map(encodeRecord))
}
