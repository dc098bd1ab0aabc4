import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { type BodyRoom, BodyShares } from '../../internal/http/body-shares.ts'

const LIMIT = 64_000_000
const BODY = 1_000_000

describe('shares of request bodies', () => {
  let now = 0
  let shares: BodyShares
  let gaveUp: string[]

  beforeEach(() => {
    now = 0
    gaveUp = []
    shares = new BodyShares(LIMIT, { monotonic: () => now })
  })

  /** A body of a holder that stands still after so many bytes; undefined: it found no room. */
  function arriving(holder: string, bytes: number, name = holder): BodyRoom | undefined {
    const room = shares.of(holder)
    if (!room.has(bytes)) return undefined
    room.arrives(() => {
      gaveUp.push(name)
      room.arrived()
      room.giveBack(bytes)
    })
    expect(room.take(bytes)).to.equal(true)
    return room
  }

  /** As many bodies as find room. */
  function flood(holder: string, bytes = BODY): number {
    let count = 0
    while (arriving(holder, bytes) !== undefined) count++
    return count
  }

  it('are half of all for who is alone, and of the rest for each that follows', () => {
    expect(['a', 'b', 'c'].map((holder) => flood(holder))).to.deep.equal([32, 16, 8])
    expect(gaveUp).to.deep.equal([])
  })

  it('need nothing but room for one body at a time', () => {
    const room = shares.of('a')
    room.arrives(() => {})
    for (let n = 0; n < LIMIT / BODY; n++) expect(room.take(BODY)).to.equal(true)
    expect(room.take(1)).to.equal(false)
    expect(shares.of('b').has(1)).to.equal(false)
    room.arrived()
    room.giveBack(LIMIT)
    expect(shares.of('b').has(LIMIT)).to.equal(true)
  })

  it('are cleared of slow bodies once there is no room: of who holds most', () => {
    for (const holder of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) flood(holder)
    expect(arriving('victim', 1_000)).to.equal(undefined)
    now = 2_000
    expect(arriving('victim', 1_000)).not.to.equal(undefined)
    expect(gaveUp).to.deep.equal(['a', 'a', 'a', 'a'])
    for (let n = 0; n < 1_000; n++) expect(arriving('victim', 1_000)).not.to.equal(undefined)
    expect(gaveUp, 'room was made for more').to.have.length(4)
  })

  it('are cleared also of many holders with a body each', () => {
    for (let n = 0; n < 64; n++) arriving(`h${n}`, BODY)
    expect(arriving('victim', 10_000)).to.equal(undefined)
    now = 2_000
    expect(arriving('victim', 10_000)).not.to.equal(undefined)
    expect(gaveUp).to.have.length(4)
  })

  it('are not cleared of bodies that are here, and wait for their answer', () => {
    while (true) {
      const room = arriving(`h${now}`, BODY)
      if (room === undefined) break
      room.arrived()
      now += 10_000
    }
    expect(now).to.equal(640_000)
    expect(arriving('victim', 1_000)).to.equal(undefined)
    expect(gaveUp).to.deep.equal([])
  })

  it('are cleared for a holder of its own slow bodies: those of a stranger who knows its buffer', () => {
    flood('a')
    expect(arriving('a', 1_000)).to.equal(undefined)
    now = 2_000
    expect(arriving('a', 1_000)).not.to.equal(undefined)
    expect(new Set(gaveUp)).to.deep.equal(new Set(['a']))
  })

  it('of small holders stay, whoever wants more', () => {
    arriving('small', BODY)
    flood('large')
    now = 2_000
    while (arriving('large', BODY)?.arrived()) {}
    expect(gaveUp).not.to.include('small')
  })
})
