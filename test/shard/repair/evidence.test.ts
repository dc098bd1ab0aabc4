/** What the inbox still proves of the journal, and what contradicts it. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { encodePack } from '../../../internal/domain/pack.ts'
import { PACK_ID_BYTES } from '../../../internal/domain/pack-id.ts'
import type { Log, LogMessage } from '../../../internal/shard/broker.ts'
import { encodeCommit, encodeRecord } from '../../../internal/shard/journal/codec.ts'
import type { JournalRecord } from '../../../internal/shard/journal/records.ts'
import { emptyState } from '../../../internal/shard/journal/state.ts'
import { weighInbox } from '../../../internal/shard/repair/evidence.ts'
import { BOOT, groupId, UID, uuid } from '../journal-records.ts'

const [LOWER, UPPER] = [10, 20]

/** A pack of one item at `seq`. */
function packAt(seq: number, itemId: string): LogMessage {
  const item = {
    itemId,
    bufferUid: UID,
    groupToken: groupId(1),
    groupKey: 'a',
    messageId: itemId,
    explicit: true,
    credits: 1,
    receivedAt: 1,
    payload: Buffer.from('1'),
  }
  return { seq, at: 0, data: encodePack(Buffer.alloc(PACK_ID_BYTES, seq), null, [item]), msgId: null }
}

/** A journal that says by drops which items stood where. */
function journalOf(stood: ReadonlyMap<number, string>): Partial<Log> {
  const commits = [...stood].map(([seq, itemId], index) => {
    const drop: JournalRecord = {
      type: 'drop',
      position: { seq, index: 0 },
      itemId,
      originalItemId: uuid(99),
    }
    const header = { boot: BOOT, epoch: 1, at: 0, highWater: null }
    return { seq: index + 1, at: 0, data: encodeCommit(header, [encodeRecord(drop)]), msgId: null }
  })
  return {
    state: async () => ({
      firstSeq: 1,
      lastSeq: commits.length,
      messages: commits.length,
      bytes: 0,
      maxBytes: 0,
    }),
    async *range() {
      yield* commits
    },
  }
}

function inboxOf(...messages: readonly LogMessage[]): Partial<Log> {
  const lastSeq = messages.at(-1)!.seq
  return {
    state: async () => ({ firstSeq: 1, lastSeq, messages: messages.length, bytes: 0, maxBytes: 0 }),
    get: async (seq) => messages.find((message) => message.seq === seq),
  }
}

const stood = new Map([
  [LOWER, uuid(1)],
  [UPPER, uuid(2)],
])
const weigh = (inbox: Partial<Log>) => weighInbox(inbox as Log, journalOf(stood) as Log, emptyState())

describe('what an inbox proves of its journal', () => {
  it('is all that the journal names, when the highest item is what it was', async () => {
    const evidence = await weigh(inboxOf(packAt(LOWER, uuid(1)), packAt(UPPER, uuid(2))))
    expect(evidence).to.include({ proven: UPPER, fault: null })
  })

  it('ends where another item stands in the place of one that the journal names', async () => {
    const evidence = await weigh(inboxOf(packAt(LOWER, uuid(1)), packAt(UPPER, uuid(7))))
    expect(evidence).to.include({
      proven: LOWER,
      fault: `message ${UPPER} does not hold what the journal says`,
    })
  })

  it('is nothing above a message that is gone: that alone contradicts nothing', async () => {
    const evidence = await weigh(inboxOf(packAt(LOWER, uuid(1)), packAt(UPPER + 5, uuid(7))))
    expect(evidence).to.include({ proven: LOWER, fault: null })
  })
})
