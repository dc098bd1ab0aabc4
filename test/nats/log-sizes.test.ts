import { expect } from 'chai'
import { describe, it } from 'mocha'
import { divideStore, inboxBeside, type LogSizes, sizesFor } from '../../internal/nats/streams/log-sizes.ts'

const MEGABYTE = 1024 * 1024
const GIGABYTE = 1024 * MEGABYTE

const sum = ({ inbox, journal, archive }: LogSizes) => inbox + journal + archive

function sizesOf(storeBytes: number, shards: number): LogSizes {
  const sizes = divideStore(storeBytes, shards)
  if (sizes === undefined) throw new Error('no sizes')
  return sizes
}

describe('sizes of logs', () => {
  it('are as documented: a small archive in a small store, 3 % of a large one', () => {
    const megabytes = (sizes: LogSizes) =>
      [sizes.inbox, sizes.journal, sizes.archive].map((bytes) => Math.round(bytes / MEGABYTE - 0.3))
    expect(megabytes(sizesOf(GIGABYTE, 1))).to.deep.equal([428, 460, 32])
    expect(megabytes(sizesOf(64 * GIGABYTE, 4))).to.deep.equal([7_134, 7_166, 446])
  })

  it('take 90 % of the store and never more, the journal with room for what is carried over', () => {
    for (const [store, shards] of [
      [GIGABYTE, 1],
      [64 * GIGABYTE, 4],
      [1024 * GIGABYTE, 16],
      [2 * GIGABYTE, 8],
      [500 * MEGABYTE, 2],
      [123_456_789_123, 7],
    ] as const) {
      const sizes = sizesOf(store, shards)
      expect(sizes.journal - sizes.inbox).to.equal(32 * MEGABYTE)
      expect(sizes.archive).to.be.at.least(Math.max(32 * MEGABYTE, sizes.inbox / 16))
      expect(shards * sum(sizes)).to.be.within(0.9 * store - 4 * shards, 0.9 * store)
    }
  })

  it('are none when an inbox would have less than 16 MB', () => {
    expect(divideStore((97 * MEGABYTE) / 0.9, 1)).to.not.equal(undefined)
    expect(divideStore((95 * MEGABYTE) / 0.9, 1)).to.equal(undefined)
  })

  it('are told by any log of the shard', () => {
    for (const inbox of [16 * MEGABYTE, 600 * MEGABYTE, 7_134_567_891]) {
      const sizes = sizesFor(inbox)
      for (const kind of ['inbox', 'journal', 'archive'] as const)
        expect(sizesFor(inboxBeside(kind, sizes[kind]))[kind], kind).to.equal(sizes[kind])
      expect(inboxBeside('archive', sizes.archive)).to.be.at.least(inbox)
    }
  })
})
