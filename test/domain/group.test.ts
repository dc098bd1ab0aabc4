import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { bufferToken, groupToken, idempotencyKey, shardOf } from '../../internal/domain/group.ts'

const UID = '0f8fad5b-d9cb-469f-a165-70867728950e'
const OTHER = '7c9e6679-7425-40de-944b-e07fc1f90ae7'

describe('names of groups', () => {
  it('are the first 128 bits of SHA-256 over uid and key', () => {
    const bytes = Buffer.concat([Buffer.from(UID.replaceAll('-', ''), 'hex'), Buffer.from('größe')])
    const wanted = createHash('sha256').update(bytes).digest().subarray(0, 16).toString('base64url')
    expect(groupToken(UID, 'größe'))
      .to.equal(wanted)
      .and.to.match(/^[A-Za-z0-9_-]{22}$/)
  })

  it('stay what they are: stored batches are named by them', () => {
    expect(groupToken(UID, 'customer-1')).to.equal('b0w67kS3lnhXWBRTFFglWQ')
    expect(bufferToken(UID)).to.equal('zbUWbb86nWhCrOKkNsfbGw')
    expect(shardOf(groupToken(UID, 'customer-1'), 16)).to.equal(14)
  })

  it('differ by key and by buffer', () => {
    const names = [groupToken(UID, 'a'), groupToken(UID, 'b'), groupToken(OTHER, 'a'), bufferToken(UID)]
    expect(new Set(names).size).to.equal(4)
  })

  it('take the uid in either case', () => {
    expect(groupToken(UID.toUpperCase(), 'a')).to.equal(groupToken(UID, 'a'))
  })

  for (const bad of ['', 'orders', UID.slice(1), `${UID}0`, UID.replaceAll('-', ''), UID.replace('f', 'g')]) {
    it(`throw for the uid ${bad}`, () => expect(() => groupToken(bad, 'a')).to.throw(RangeError))
  }

  it('spread groups evenly over shards and always to the same', () => {
    const counts = new Array<number>(8).fill(0)
    for (let i = 0; i < 8000; i++) {
      const shard = shardOf(groupToken(UID, `key ${i}`), 8)
      counts[shard] = (counts[shard] ?? Number.NaN) + 1
    }
    expect(Math.min(...counts)).to.be.above(850)
    expect(Math.max(...counts)).to.be.below(1150)
    expect(shardOf(groupToken(UID, 'a'), 1)).to.equal(0)
  })

  it('make the idempotency key', () => {
    expect(idempotencyKey('abc', 1764_000_000_000_123)).to.equal('grp:abc:v1764000000000123')
  })
})
