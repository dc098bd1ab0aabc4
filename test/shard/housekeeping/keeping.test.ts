/** What is kept in the journal and carried forward in it, with a journal and payloads that answer at once. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { loopTurn } from '../../../internal/runtime/loop-turn.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { type LiveItem, LiveItems } from '../../../internal/shard/held/live.ts'
import { CachedMessage, PayloadCache } from '../../../internal/shard/held/payload-cache.ts'
import { Carrying, type CarryingOptions } from '../../../internal/shard/housekeeping/carrying.ts'
import { Keeping, type KeepingOptions } from '../../../internal/shard/housekeeping/keeping.ts'
import { encodeCommit, encodeRecord } from '../../../internal/shard/journal/codec.ts'
import { applyCommit } from '../../../internal/shard/journal/fold.ts'
import type { Committed } from '../../../internal/shard/journal/journal.ts'
import type { KeepRecord } from '../../../internal/shard/journal/records.ts'
import { emptyState } from '../../../internal/shard/journal/state.ts'
import { BOOT } from '../journal-records.ts'

const SIZE = 100
const JOURNAL = 1_000_000

/** Packs of one item each, of groups in turn, all in memory. */
function inboxOf(count: number, groups: number) {
  const clock = systemClock()
  const commits: Buffer[] = []
  const state = emptyState()
  const get = async (seq: number) => ({ seq, at: 0, data: commits[seq - JOURNAL - 1]!, msgId: null })
  const read = (_: unknown, seq: number) => get(seq)
  const payloads = new PayloadCache({ payloadBudget: count * SIZE, payloadMs: 60_000 }, clock, read)
  const live = new LiveItems(payloads)
  const buffer = { count: () => {} }
  const items = Array.from({ length: count }, (_, n) => {
    const message = new CachedMessage('inbox', n + 1)
    const group = { id: String(n % groups), buffer }
    const item = { seq: n + 1, index: 0, at: n, message, offset: 0, size: SIZE, bytes: SIZE, group }
    live.add(item as unknown as LiveItem)
    payloads.offer(message, Buffer.alloc(SIZE, n % groups))
    return item as unknown as LiveItem
  })
  const keeps: KeepRecord[] = []
  const commit = async (record: KeepRecord, committed: Committed) => {
    keeps.push(record)
    const header = { boot: BOOT, epoch: JOURNAL, at: 0, highWater: null }
    const data = encodeCommit(header, [encodeRecord(record)])
    const seq = JOURNAL + commits.push(data)
    applyCommit(state, { seq, commit: { ...header, records: [record] } })
    committed(seq, true, data)
    return seq
  }
  /** Bytes of room in the journal and its limit, the sequence from which on items of the inbox are left, and commits behind the last keep. */
  const at = {
    left: Number.POSITIVE_INFINITY,
    maxBytes: 0,
    below: Number.POSITIVE_INFINITY,
    snapshot: 0,
    passed: 0,
  }
  const parts = {
    clock,
    limits: { keepBytes: 0, keepRatio: 0, fullShare: 0.6 },
    payloads,
    live,
    state,
    journal: {
      commit,
      carry: commit,
      prove: async () => {},
      isFull: false,
      left: () => at.left,
    },
    journalLog: {
      get,
      state: async () => ({
        firstSeq: JOURNAL,
        lastSeq: JOURNAL + commits.length + at.passed,
        messages: commits.length,
        bytes: 1e9,
        maxBytes: at.maxBytes,
      }),
    },
    inboxLog: { state: async () => ({ bytes: 0, maxBytes: 0 }) },
    inbox: { bytesAbove: 1e9, below: () => at.below, advanceHorizon: async () => {} },
    replay: { cursor: count + 1 },
    cut: {
      get snapshot() {
        return { name: { seq: at.snapshot, identity: 'f0' }, bytes: 1 }
      },
    },
    stopped: () => false,
  }
  const keep = () => new Keeping(parts as unknown as KeepingOptions).step()
  const carry = () => new Carrying(parts as unknown as CarryingOptions).step()
  return { live, items, keeps, at, keep, carry, state }
}

const seqsOf = (keeps: readonly KeepRecord[]) =>
  keeps.flatMap(({ items }) => items.map(({ position }) => position.seq))
/** From, from + step, … below `below`. */
const range = (from: number, below: number, step = 1) =>
  Array.from({ length: Math.ceil((below - from) / step) }, (_, n) => from + n * step)

describe('keeping in the journal', () => {
  it('keeps what lags, as far as it fits, group by group', async () => {
    const { live, keeps, at, keep } = inboxOf(100, 3)
    Object.assign(at, { left: 10 * SIZE, below: 50 })
    await keep()
    expect(seqsOf(keeps)).to.deep.equal([1, 4, 7, 10, 2, 5, 8, 3, 6, 9])
    expect(live.lowestInboxSeq).to.equal(11)
    at.left = 1e9
    await keep()
    const rest = [range(11, 50, 3), range(12, 50, 3), range(13, 50, 3)].flat()
    expect(seqsOf(keeps).slice(10)).to.deep.equal(rest)
    expect([live.lowestInboxSeq, live.keptBytes]).to.deep.equal([50, 49 * SIZE])
  })

  it('keeps at most half of what the journal holds', async () => {
    const { live, at, keep } = inboxOf(100, 3)
    at.maxBytes = 21 * SIZE
    await keep()
    expect(live.keptBytes).to.equal(10 * SIZE)
    await keep()
    expect(live.keptBytes).to.equal(10 * SIZE)
  })

  it('copies in turns, and puts the pieces together', async () => {
    const { live, keeps, keep } = inboxOf(20_000, 2)
    const turns = new Map<number, number>()
    const inInbox = live.inInbox.bind(live)
    live.inInbox = function* counted() {
      for (const item of inInbox()) {
        turns.set(loopTurn(), (turns.get(loopTurn()) ?? 0) + 1)
        yield item
      }
    }
    await keep()
    // Of 256 KB, and one more to know that they are enough.
    expect(Math.max(...turns.values())).to.be.at.most(2_622)
    expect(seqsOf(keeps)).to.deep.equal([...range(1, 20_001, 2), ...range(2, 20_001, 2)])
    expect(live.inboxBytes).to.equal(0)
  })
})

describe('carrying forward in the journal', () => {
  /** Six items in three commits, of which the second one is over. */
  async function kept() {
    const inbox = inboxOf(6, 1)
    inbox.at.left = 2 * SIZE
    for (let commit = 0; commit < 3; commit++) await inbox.keep()
    const { live, items, state } = inbox
    live.remove(items[1]!)
    state.kept.delete(2, 0)
    Object.assign(inbox.at, { left: 1e9, snapshot: JOURNAL + 3 })
    return inbox
  }

  it('carries what the oldest commits still hold, whole commits at once', async () => {
    const { live, keeps, carry, state } = await kept()
    await carry()
    // Of the older half of the journal.
    expect(seqsOf(keeps).slice(6)).to.deep.equal([1])
    expect(Array.from(live.kept(), ({ seq, message }) => [seq, message.seq - JOURNAL])).to.deep.equal([
      [1, 4],
      [3, 2],
      [4, 2],
      [5, 3],
      [6, 3],
    ])
    expect(state.kept.oldestCommit).to.equal(JOURNAL + 2)
    await carry()
    expect(seqsOf(keeps).slice(7)).to.deep.equal([])
  })

  it('carries nothing that stands above the newest snapshot', async () => {
    const { keeps, at, carry } = await kept()
    at.snapshot = JOURNAL + 1
    await carry()
    expect(keeps).to.have.length(3)
  })

  it('carries nothing where one item of a commit fits, and not all', async () => {
    const { keeps, at, carry, state } = await kept()
    state.kept.delete(1, 0)
    Object.assign(at, { left: 2 * SIZE - 1, passed: 2 })
    await carry()
    expect(keeps).to.have.length(3)
    at.left++
    await carry()
    expect(seqsOf(keeps).slice(6)).to.deep.equal([3, 4])
  })
})
