import { expect } from 'chai'
import { describe, it } from 'mocha'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import type { Log } from '../../../internal/shard/broker.ts'
import { HOUSEKEEPING_LIMITS } from '../../../internal/shard/housekeeping/limits.ts'
import { Snapshots } from '../../../internal/shard/housekeeping/snapshots.ts'
import { decodeCommit } from '../../../internal/shard/journal/codec.ts'
import { Journal } from '../../../internal/shard/journal/journal.ts'
import { writeSnapshot } from '../../../internal/shard/journal/snapshot.ts'
import { emptyState } from '../../../internal/shard/journal/state.ts'
import { BOOT, FIRST, seal } from '../journal-records.ts'

const POSITIONS = 50_000

/** An owner that seals a batch in each turn of the event loop, from the begin of its snapshot on. */
async function snapshotAmongSeals() {
  const state = emptyState()
  for (let n = 0; n < POSITIONS; n++) state.finished.add(FIRST + 2 * n, 0)
  const types: string[] = []
  const parts: Buffer[] = []
  let then: Buffer = Buffer.alloc(0)
  let sealed = 0
  const append = async (data: Uint8Array) => {
    for (const record of decodeCommit(data).records) {
      types.push(record.type)
      if (record.type === 'snapshot-part') parts.push(Buffer.from(record.bytes))
    }
    return { kind: 'stored', seq: FIRST + types.length, duplicate: false }
  }
  const clock = systemClock()
  const journal = new Journal({
    shard: 0,
    log: { append } as unknown as Log,
    clock,
    boot: BOOT,
    epoch: FIRST,
    lastSeq: FIRST,
    state: () => state,
    highWater: () => null,
    claimAgain: async () => Number.NaN,
    onCommit: () => {},
    onLost: (error) => {
      throw error
    },
  })
  let running = true
  const sealNext = () => {
    if (!running) return
    if (types.length === 1) then = writeSnapshot(state)
    if (types.length > 0) journal.write(seal(sealed % 250, [{ seq: FIRST + 2 * sealed++ + 1, index: 0 }]))
    setImmediate(sealNext)
  }
  setImmediate(sealNext)
  const limits = { ...HOUSEKEEPING_LIMITS, partBytes: 20_000 }
  const options = { clock, limits, journal, state, stopped: () => false }
  const snapshots = new Snapshots(options, { bytes: 1e9, snapshotBegin: 0, resumed: null })
  await snapshots.take()
  running = false
  return { types, parts, then, sealed, snapshots, journal }
}

describe('a snapshot', () => {
  it('holds the state at its begin, and seals pass while it is encoded', async () => {
    const { types, parts, then, sealed, snapshots } = await snapshotAmongSeals()
    expect(Buffer.concat(parts).equals(then)).to.equal(true)
    expect(parts.slice(0, -1).every(({ length }) => length === 20_000)).to.equal(true)
    expect(types.indexOf('snapshot-part') - types.indexOf('snapshot-begin')).to.be.above(10)
    expect([types[0], types.includes('snapshot-end')]).to.deep.equal(['snapshot-begin', true])
    expect(snapshots.begin).to.equal(FIRST + 1)
    expect(sealed).to.be.above(10)
  })
})
