import { createHash } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { bufferToken, groupToken, idempotencyKey, shardOf } from '../../internal/domain/group.ts'

const uid = '0f8fad5b-d9cb-469f-a165-70867728950e'
const other = '7c9e6679-7425-40de-944b-e07fc1f90ae7'

describe('names of groups', () => {
  it('are the first 128 bits of SHA-256 over uid and key', () => {
    const bytes = Buffer.concat([Buffer.from(uid.replaceAll('-', ''), 'hex'), Buffer.from('größe')])
    const wanted = createHash('sha256').update(bytes).digest().subarray(0, 16).toString('base64url')
    expect(groupToken(uid, 'größe'))
      .to.equal(wanted)
      .and.to.match(/^[A-Za-z0-9_-]{22}$/)
  })

  it('stay what they are: stored batches are named by them', () => {
    expect(groupToken(uid, 'customer-1')).to.equal('b0w67kS3lnhXWBRTFFglWQ')
    expect(bufferToken(uid)).to.equal('zbUWbb86nWhCrOKkNsfbGw')
    expect(shardOf(groupToken(uid, 'customer-1'), 16)).to.equal(14)
  })

  it('differ by key and by buffer', () => {
    const names = [groupToken(uid, 'a'), groupToken(uid, 'b'), groupToken(other, 'a'), bufferToken(uid)]
    expect(new Set(names).size).to.equal(4)
  })

  it('take the uid in either case', () => {
    expect(groupToken(uid.toUpperCase(), 'a')).to.equal(groupToken(uid, 'a'))
  })

  for (const bad of ['', 'orders', uid.slice(1), `${uid}0`, uid.replaceAll('-', ''), uid.replace('f', 'g')]) {
    it(`throw for the uid ${bad}`, () => expect(() => groupToken(bad, 'a')).to.throw(RangeError))
  }

  it('spread groups evenly over shards and always to the same', () => {
    const counts = new Array<number>(8).fill(0)
    for (let i = 0; i < 8000; i++) {
      const shard = shardOf(groupToken(uid, `key ${i}`), 8)
      counts[shard] = (counts[shard] ?? Number.NaN) + 1
    }
    expect(Math.min(...counts)).to.be.above(850)
    expect(Math.max(...counts)).to.be.below(1150)
    expect(shardOf(groupToken(uid, 'a'), 1)).to.equal(0)
  })

  it('make the idempotency key', () => {
    expect(idempotencyKey('abc', 1764_000_000_000_123)).to.equal('grp:abc:v1764000000000123')
  })
})
