import { expect } from 'chai'
import type { Recorded } from '../../bench/load/recorded.ts'
import type { Batches } from '../../bench/load/sink.ts'
import { dueAt, inversions, outcomeOf } from '../../bench/peers/analysis.ts'

const WINDOW = { idleTimeoutMs: 100, maxWaitFromFirstMs: 250, maxItems: 3 }
const FIRST_ID = 7
const NEVER = Number.NaN

/** Each item: key, sent at, 202 at. */
function sent(items: [key: number, sentAt: number, ackedAt: number][]): Recorded {
  const sentAt = Float64Array.from(items, ([, at]) => at)
  return {
    firstId: FIRST_ID,
    keys: Uint32Array.from(items, ([key]) => key),
    sentAt,
    dueAt: sentAt,
    ackedAt: Float64Array.from(items, ([, , at]) => at),
  }
}

/** Each batch: when it came, and the places of its items. */
function arrived(batches: [at: number, ...places: number[]][]): Batches {
  return {
    at: Float64Array.from(batches, ([at]) => at),
    sizes: Uint32Array.from(batches, ([, ...places]) => places.length),
    ids: Uint32Array.from(batches.flatMap(([, ...places]) => places.map((n) => n + FIRST_ID))),
  }
}

describe('the analysis of a round', () => {
  describe('when a batch was due', () => {
    it('is a gap above the idle time after its last item', () => {
      expect(dueAt([1000, 1050], WINDOW)).to.equal(1150)
    })

    it('is the longest wait when items keep coming', () => {
      expect(dueAt([1000, 1090, 1180, 1260], { ...WINDOW, maxItems: 50 })).to.equal(1250)
    })

    it('is the item that made it full', () => {
      expect(dueAt([1000, 1020, 1010], WINDOW)).to.equal(1020)
    })

    it('is the first such gap, whatever came after it', () => {
      expect(dueAt([1000, 1120], WINDOW)).to.equal(1100)
    })

    it('is the first trigger that held, though a later item made it full', () => {
      expect(dueAt([1000, 1010, 1200], WINDOW)).to.equal(1110)
    })
  })

  describe('order', () => {
    it('is broken by an item that overtakes one whose 202 came before it was sent', () => {
      const items = sent([
        [1, 0, 5],
        [1, 6, 10],
        [1, 11, 15],
      ])
      expect(inversions(items, [0, 1, 2])).to.equal(0)
      expect(inversions(items, [2, 0, 1])).to.equal(1)
      expect(inversions(items, [2, 1, 0])).to.equal(2)
    })

    it('is nobody’s to keep between items under way at the same time', () => {
      const items = sent([
        [1, 0, 5],
        [1, 4, 10],
      ])
      expect(inversions(items, [1, 0])).to.equal(0)
    })

    it('counts within a key alone', () => {
      const items = sent([
        [1, 0, 5],
        [2, 6, 10],
      ])
      expect(inversions(items, [1, 0])).to.equal(0)
    })

    it('asks nothing of an item without a 202', () => {
      const items = sent([
        [1, 0, NEVER],
        [1, 6, 10],
      ])
      expect(inversions(items, [1, 0])).to.equal(0)
    })
  })

  it('counts what was lost, what came twice, and batches with their lateness', () => {
    const items = sent([
      [1, 0, 10],
      [1, 10, 20],
      [2, 20, 30],
      [2, 30, NEVER],
      [3, 40, 50],
    ])
    const outcome = outcomeOf(items, arrived([[125, 0, 1], [133, 2], [135, 2, 3], [200]]), WINDOW, 0)
    expect(outcome).to.deep.include({ accepted: 4, failed: 1, delivered: 4, lost: 1, duplicates: 1 })
    expect(outcome).to.deep.include({ batches: 3, meanBatch: 5 / 3, inversions: 0 })
    expect(outcome.deliveredPerSecond).to.be.closeTo(4_000 / 135, 1e-9)
    // 125 - 120, 133 - 130, 135 - 130.
    expect(outcome.lateMs).to.deep.equal([5, 5])
  })

  it('leaves out what an earlier round had sent, and a batch that has nothing new', () => {
    const items = sent([[1, 0, 10]])
    const outcome = outcomeOf(
      items,
      arrived([
        [90, -3],
        [112, 0, -2],
        [900, 0],
      ]),
      WINDOW,
      0,
    )
    expect(outcome).to.deep.include({ delivered: 1, lost: 0, duplicates: 1, batches: 2 })
    expect(outcome.lateMs).to.deep.equal([2, 2])
  })

  it('takes rate and latency of what was acknowledged after the warm-up, from the time at which it was due', () => {
    const items = sent([
      [1, 0, 40],
      [1, 90, 110],
      [1, 150, 200],
    ])
    items.dueAt = Float64Array.of(0, 80, 100)
    const { acceptedPerSecond, ackMs } = outcomeOf(items, arrived([[300, 0, 1, 2]]), WINDOW, 100)
    expect(acceptedPerSecond).to.equal(20)
    expect(ackMs).to.deep.equal([30, 30, 30])
  })
})
