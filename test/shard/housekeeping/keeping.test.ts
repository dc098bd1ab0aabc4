/** What is carried into the journal, with a journal and payloads that answer at once. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { loopTurn } from '../../../internal/runtime/loop-turn.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { type LiveItem, LiveItems } from '../../../internal/shard/held/live.ts'
import { CachedMessage, PayloadCache } from '../../../internal/shard/held/payload-cache.ts'
import { carry, type KeepInto } from '../../../internal/shard/housekeeping/keeping.ts'
import { encodeCommit, encodeRecord } from '../../../internal/shard/journal/codec.ts'
import type { Committed } from '../../../internal/shard/journal/journal.ts'
import type { KeepRecord } from '../../../internal/shard/journal/records.ts'
import { BOOT } from '../journal-records.ts'

const SIZE = 100
const JOURNAL = 1_000_000

/** Packs of one item each, of groups in turn, all in memory. */
function inboxOf(count: number, groups: number) {
  const clock = systemClock()
  const commits: Buffer[] = []
  const read = async (_: unknown, seq: number) => {
    return { seq, at: 0, data: commits[seq - JOURNAL - 1]!, msgId: null }
  }
  const payloads = new PayloadCache({ budget: count * SIZE, keepMs: 60_000 }, clock, read, async () => {})
  const live = new LiveItems(payloads)
  const buffer = { hold: () => {}, let: () => {} }
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
    committed(seq, true, data)
    return seq
  }
  const into = {
    clock,
    payloads,
    live,
    journal: { used: 0, commit },
    maxBytes: 0,
    mayUse: Number.POSITIVE_INFINITY,
    sorted: true,
    stopped: () => false,
  } as unknown as KeepInto
  return { live, items, keeps, into }
}

const seqsOf = (keeps: readonly KeepRecord[]) =>
  keeps.flatMap(({ items }) => items.map(({ position }) => position.seq))

describe('carrying into the journal', () => {
  it('carries what has its turn, as far as it fits, group by group', async () => {
    const { live, keeps, into } = inboxOf(100, 3)
    await carry({ items: live.inInbox(), has: ({ seq }) => seq < 50, space: 10 * SIZE }, into)
    expect(seqsOf(keeps)).to.deep.equal([1, 4, 7, 10, 2, 5, 8, 3, 6, 9])
    expect(live.lowestInboxSeq).to.equal(11)
    await carry({ items: live.inInbox(), has: ({ seq }) => seq < 50, space: 1e9 }, { ...into, sorted: false })
    expect(seqsOf(keeps).slice(10)).to.deep.equal(Array.from({ length: 39 }, (_, n) => n + 11))
    expect([live.lowestInboxSeq, live.keptBytes]).to.deep.equal([50, 49 * SIZE])
  })

  it('carries forward those of the oldest commits, and leaves what left them', async () => {
    const { live, items, keeps, into } = inboxOf(6, 1)
    for (const item of items) await carry({ items: [item], has: () => true, space: SIZE }, into)
    live.remove(items[1]!)
    const { seq } = items[3]!.message
    await carry({ items: live.kept(), has: ({ message }) => message.seq < seq, space: 1e9 }, into)
    expect(seqsOf(keeps).slice(6)).to.deep.equal([1, 3])
    expect(Array.from(live.kept(), (item) => item.seq)).to.deep.equal([4, 5, 6, 1, 3])
  })

  it('copies in turns, and puts the pieces together', async () => {
    const { live, keeps, into } = inboxOf(20_000, 2)
    const turns = new Map<number, number>()
    function* counted() {
      for (const item of live.inInbox()) {
        turns.set(loopTurn(), (turns.get(loopTurn()) ?? 0) + 1)
        yield item
      }
    }
    await carry({ items: counted(), has: () => true, space: 1e9 }, into)
    // Of 256 KB, and one more to know that they are enough.
    expect(Math.max(...turns.values())).to.be.at.most(2_622)
    const ended = Array.from({ length: 20_000 }, (_, n) => (n < 10_000 ? 2 * n + 1 : 2 * (n - 10_000) + 2))
    expect(seqsOf(keeps)).to.deep.equal(ended)
    expect(live.inboxBytes).to.equal(0)
  })
})
