/** When a pause of a shard ends (docs/architecture/protocol.md, "Membership"). The journal proves when the test says so. */
import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { type Pausable, Pausing } from '../../internal/shard/pausing.ts'

describe('a pause of a shard', () => {
  let proofs: { resolve: () => void; reject: (error: Error) => void }[]
  let groups: { paused: boolean; pause(paused: boolean): void }
  let parts: Pausable
  let ended: boolean
  let pausing: Pausing

  beforeEach(() => {
    proofs = []
    ended = false
    groups = {
      paused: false,
      pause(paused) {
        this.paused = paused
      },
    }
    const prove = () => new Promise<void>((resolve, reject) => proofs.push({ resolve, reject }))
    parts = { groups, journal: { prove } }
    pausing = new Pausing(() => ended)
  })

  /** The proof with that number comes, the first is 0. */
  async function proven(number: number): Promise<void> {
    proofs[number]!.resolve()
    await setImmediate()
  }

  it('begins at once and ends with a proof', async () => {
    pausing.pause(true, parts)
    expect(groups.paused).to.equal(true)
    pausing.pause(false, parts)
    expect(groups.paused).to.equal(true)
    await proven(0)
    expect(groups.paused).to.equal(false)
  })

  it('does not end with a proof that began before a later pause', async () => {
    pausing.pause(true, parts)
    pausing.pause(false, parts)
    pausing.pause(true, parts)
    pausing.pause(false, parts)
    await proven(0)
    expect([groups.paused, proofs.length]).to.deep.equal([true, 2])
    await proven(1)
    expect(groups.paused).to.equal(false)
  })

  it('stays while the lease is gone when the proof comes', async () => {
    pausing.pause(true, parts)
    pausing.pause(false, parts)
    pausing.pause(true, parts)
    await proven(0)
    expect([groups.paused, proofs.length]).to.deep.equal([true, 1])
  })

  it('counts from the claim on: one that came since is proven over', async () => {
    const { pauses } = pausing
    pausing.pause(true, null)
    pausing.pause(false, null)
    pausing.begin(parts, pauses)
    expect(groups.paused).to.equal(true)
    await proven(0)
    expect(groups.paused).to.equal(false)
  })

  it('stays when the proof fails or the owner has ended', async () => {
    pausing.pause(true, parts)
    pausing.pause(false, parts)
    proofs[0]!.reject(new Error('fenced'))
    await setImmediate()
    expect(groups.paused).to.equal(true)
    pausing.pause(false, parts)
    ended = true
    await proven(1)
    expect(groups.paused).to.equal(true)
  })
})
