import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Log, LogMessage } from '../../../internal/shard/broker.ts'
import { readJournal, restOf } from '../../../internal/shard/claim/takeover.ts'
import { encodeCommit, encodeRecord } from '../../../internal/shard/journal/codec.ts'
import { applyCommit } from '../../../internal/shard/journal/fold.ts'
import type { JournalRecord } from '../../../internal/shard/journal/records.ts'
import { writeSnapshot } from '../../../internal/shard/journal/snapshot.ts'
import { emptyState } from '../../../internal/shard/journal/state.ts'
import { commitOf, FIRST, seal, settled, uuid } from '../journal-records.ts'

/** What an owner wrote, and the state that it has: it never reads its own snapshots. */
class Written {
  readonly state = emptyState()
  readonly messages: LogMessage[] = []

  add(...records: JournalRecord[]): void {
    const commit = commitOf(records, 1_790_000_000_000)
    const seq = (this.messages.at(-1)?.seq ?? FIRST - 1) + 1
    const data = encodeCommit(commit, records.map(encodeRecord))
    this.messages.push({ seq, at: 0, data, msgId: null })
    applyCommit(this.state, { seq, commit })
  }

  get lastSeq(): number {
    return this.messages.at(-1)!.seq
  }

  /** All that a fold asks a log. */
  get log(): Log {
    const { messages } = this
    const state = async () => ({ firstSeq: messages[0]!.seq, origin: FIRST })
    async function* range(from: number, to: number) {
      for (const message of messages) if (message.seq >= from && message.seq <= to) yield message
    }
    return { state, range } as unknown as Log
  }

  /** Seals, drops, keeps and results: a state whose order is not that of its keys. */
  load(from: number): void {
    for (let n = from; n < from + 40; n++) {
      const at = (index: number) => ({ seq: FIRST + ((n * 7) % 1_000), index })
      this.add(seal(n % 3, [at(0), at(1)]))
      this.add({ type: 'drop', position: at(2), itemId: uuid(9_999 - n), originalItemId: uuid(n) })
      this.add({ type: 'keep', items: [{ position: at(3), at: 1, item: Buffer.from('item') }] })
      this.add({ type: 'seen', upTo: FIRST + n, writers: [{ writer: uuid(n % 5), number: n }] })
      if (n % 4 === 0) this.add(settled('done', n % 3, FIRST + this.messages.length - 4))
    }
  }

  snapshot(): void {
    this.add({ type: 'snapshot-begin' })
    const bytes = writeSnapshot(this.state)
    this.add({ type: 'snapshot-part', bytes }, { type: 'snapshot-end' })
  }
}

describe('rest of a snapshot that its owner did not end', () => {
  /** Purged behind a snapshot, as journals are; its owner goes on and ends within the next one. */
  function cut(): { written: Written; whole: Buffer } {
    const written = new Written()
    written.load(0)
    const begin = written.messages.length
    written.snapshot()
    written.load(40)
    written.add({ type: 'snapshot-begin' })
    const whole = writeSnapshot(written.state)
    written.add({ type: 'snapshot-part', bytes: whole.subarray(0, 1_000) })
    written.load(80)
    written.add({ type: 'snapshot-part', bytes: whole.subarray(1_000, 1_500) })
    written.add({ type: 'epoch' })
    written.messages.splice(0, begin)
    return { written, whole }
  }

  it('is what the next owner reads in the journal, to the byte', async () => {
    const { written, whole } = cut()
    const { unfinished } = await readJournal(written.log, written.lastSeq)
    expect(Buffer.concat(unfinished!.parts).equals(whole.subarray(0, 1_500))).to.equal(true)
    const rest = await restOf(written.log, unfinished!)
    expect(rest!.equals(whole.subarray(1_500))).to.equal(true)
  })

  it('ends it: the journal may be cut behind its begin', async () => {
    const { written } = cut()
    const { unfinished } = await readJournal(written.log, written.lastSeq)
    const { begin } = unfinished!
    const bytes = (await restOf(written.log, unfinished!))!
    written.add({ type: 'snapshot-part', bytes }, { type: 'snapshot-end' })
    const all = writeSnapshot(written.state)
    written.messages.splice(
      0,
      written.messages.findIndex(({ seq }) => seq === begin),
    )
    const again = await readJournal(written.log, written.lastSeq)
    expect(again.fault).to.equal(null)
    expect(writeSnapshot(again.state).equals(all)).to.equal(true)
  })

  it('is not told when the journal says otherwise than what is written', async () => {
    const { written } = cut()
    const { unfinished } = await readJournal(written.log, written.lastSeq)
    const other = Buffer.concat(unfinished!.parts)
    other[other.length - 1]! ^= 1
    expect(await restOf(written.log, { ...unfinished!, parts: [other] })).to.equal(null)
  })
})
