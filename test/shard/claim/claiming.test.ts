/** What a claim makes of a journal that is not read whole at once (docs/architecture/protocol.md, "Claims"). */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import { SnapshotArchive } from '../../../internal/shard/archive/snapshot-archive.ts'
import type { Broker, Log, LogMessage } from '../../../internal/shard/broker.ts'
import { claimShard } from '../../../internal/shard/claim/takeover.ts'
import { encodeCommit, encodeRecord } from '../../../internal/shard/journal/codec.ts'
import { commitName } from '../../../internal/shard/journal/commit-name.ts'
import type { JournalRecord } from '../../../internal/shard/journal/records.ts'
import { encodeSnapshot, freezeState } from '../../../internal/shard/journal/snapshot.ts'
import { emptyState } from '../../../internal/shard/journal/state.ts'
import { LostTailError } from '../../../internal/shard/lost-tail.ts'
import { commitOf, FIRST, seal } from '../journal-records.ts'
import { memoryArchive } from '../memory-archive.ts'

/** A journal whose reading may be hindered; it takes one claim. */
class Stored {
  readonly messages: LogMessage[] = []
  /** Each reading takes one, and answers with the messages that it lets pass. */
  readonly readings: ((message: LogMessage) => boolean)[] = []
  readonly archive = new SnapshotArchive({ archive: memoryArchive(), clock: systemClock(), writer: 'a' })
  proofs = 0

  add(...records: JournalRecord[]): number {
    const seq = FIRST + this.messages.length
    const data = encodeCommit(commitOf(records), records.map(encodeRecord))
    this.messages.push({ seq, at: 0, data, msgId: null })
    return seq
  }

  get log(): Log {
    const { messages, readings } = this
    const state = async () => ({ firstSeq: messages[0]!.seq, origin: FIRST })
    const append = async () => ({ kind: 'stored', seq: this.add({ type: 'epoch' }), duplicate: false })
    async function* range(from: number, to: number) {
      const passes = readings.shift() ?? (() => true)
      for (const message of messages)
        if (message.seq >= from && message.seq <= to && passes(message)) yield message
    }
    const get = async (seq: number) => messages.find((message) => message.seq === seq)
    return { state, append, range, get } as unknown as Log
  }

  claim({ repairs = false } = {}): ReturnType<typeof claimShard> {
    const broker = { journal: () => this.log } as unknown as Broker
    const { archive } = this
    const asked = { broker, archive, shard: 0, clock: systemClock(), boot: randomUUID(), claim: 1 }
    const prove = async () => void this.proofs++
    return claimShard({ ...asked, repairs, stopped: () => false }, (_, state) => {
      // A reconnect makes its journal prove before anything is read.
      expect(state()).to.deep.equal(emptyState())
      return { prove }
    })
  }
}

describe('a claim', () => {
  function journal(): Stored {
    const stored = new Stored()
    stored.add({ type: 'epoch' })
    stored.add(seal(0, [{ seq: FIRST, index: 0 }]))
    stored.add(seal(1, [{ seq: FIRST, index: 1 }]))
    return stored
  }

  for (const [what, passes] of Object.entries({
    'ends before its own record': ({ seq }: LogMessage) => seq < FIRST + 2,
    'passes over commits that are purged': ({ seq }: LogMessage) => seq !== FIRST + 1,
  })) {
    it(`reads again behind its proof when the reading ${what}`, async () => {
      const stored = journal()
      stored.readings.push(passes)
      const { claim } = await stored.claim()
      expect(claim.state.batches.size).to.equal(2)
      expect(stored.proofs).to.equal(2)
    })
  }

  it('is lost when each reading passes over the same commits, and a proof follows', async () => {
    const stored = journal()
    stored.readings.push(
      ...[1, 2].map(
        () =>
          ({ seq }: LogMessage) =>
            seq !== FIRST + 1,
      ),
    )
    const error = await stored.claim().catch((reason: Error) => reason)
    expect(error).to.be.instanceOf(LostTailError)
    expect(stored.proofs).to.equal(2)
  })

  it('is not lost however often a reading ends before its own record: the proof was stored behind it', async () => {
    const stored = journal()
    stored.readings.push(
      ...[1, 2, 3].map(
        () =>
          ({ seq }: LogMessage) =>
            seq < FIRST + 2,
      ),
    )
    expect((await stored.claim()).claim.state.batches.size).to.equal(2)
    expect(stored.proofs).to.equal(4)
  })

  it('goes on reading when something else is missing each time', async () => {
    const stored = journal()
    for (const lost of [1, 2]) stored.readings.push(({ seq }) => seq !== FIRST + lost)
    expect((await stored.claim()).claim.state.batches.size).to.equal(2)
    expect(stored.proofs).to.equal(3)
  })

  it('is lost where a snapshot names a commit that the journal does not have, but for a repair', async () => {
    const stored = journal()
    const other = commitName(FIRST + 2, Buffer.from('another'))
    await stored.archive.write(other, encodeSnapshot(freezeState(emptyState())), () => false)
    const error = await stored.claim().catch((reason: Error) => reason)
    expect(error).to.be.instanceOf(LostTailError)
    expect((error as Error).message).to.include(`a snapshot names the commit ${FIRST + 2}`)
    expect(stored.proofs).to.equal(2)
    expect((await stored.claim({ repairs: true })).claim.state.batches.size).to.equal(2)
  })
})
