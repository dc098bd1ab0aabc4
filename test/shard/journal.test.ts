/** The end of an owner's journal, on a log that answers when the test says so. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { AppendAnswer, Log } from '../../internal/shard/broker.ts'
import { decodeCommit } from '../../internal/shard/codec.ts'
import { emptyState } from '../../internal/shard/fold.ts'
import { Journal, JournalClosedError } from '../../internal/shard/journal.ts'
import { eventually } from '../support/eventually.ts'

const EPOCH = 7

function heldLog() {
  const stored: Uint8Array[] = []
  const waiting: (() => void)[] = []
  const log = {
    append: (data: Uint8Array) =>
      new Promise<AppendAnswer>((resolve) => {
        const seq = EPOCH + stored.push(Buffer.from(data))
        waiting.push(() => resolve({ kind: 'stored', seq, duplicate: false }))
      }),
  } as Pick<Log, 'append'> as Log
  return { log, stored, answer: () => waiting.shift()!() }
}

describe('journal', () => {
  it('writes nothing behind its release, by which the next owner knows that it may claim', async () => {
    const { log, stored, answer } = heldLog()
    const journal = new Journal({
      ...{ log, clock: systemClock(), boot: randomUUID(), epoch: EPOCH, lastSeq: EPOCH, state: emptyState() },
      ...{ highWater: () => null, onCommit: () => {}, onLost: () => {} },
    })
    const release = journal.commit({ type: 'release', batches: [] })
    await eventually(() => stored.length === 1)
    const late = journal.prove().catch((error: unknown) => error)
    answer()
    await release
    expect(await late).to.be.instanceOf(JournalClosedError)
    await journal.close()
    expect(stored.map((data) => decodeCommit(data).records.at(-1)?.type)).to.deep.equal(['release'])
  })
})
