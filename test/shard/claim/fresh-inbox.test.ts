/** What an owner must know before it says that an inbox lost messages (docs/architecture/protocol.md, "Lost tail"). */
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import { readPackHeader } from '../../../internal/domain/pack.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import type { AppendAnswer, Log } from '../../../internal/shard/broker.ts'
import { sureOfInbox } from '../../../internal/shard/claim/fresh-inbox.ts'
import type { InboxAnswers } from '../../../internal/shard/claim/takeover.ts'
import { LostTailError } from '../../../internal/shard/lost-tail.ts'
import { FencedError } from '../../../internal/shard/ports.ts'

/** An inbox of which the server that answers lacks the last `behind` messages; a probe takes the first answer of `answers`. */
class Inbox {
  lastSeq: number
  behind = 0
  readonly answers: AppendAnswer[] = []
  readonly probes: string[] = []
  /** In the order in which they came. */
  readonly asked: string[] = []
  fenced = false

  constructor(lastSeq: number) {
    this.lastSeq = lastSeq
  }

  /** Whether it has the message `seq`. */
  holds(seq: number): Promise<string> {
    return this.sure(async (inbox) => {
      this.asked.push('look')
      if ((await inbox.state()).lastSeq < seq) throw new LostTailError('too short')
    })
  }

  /** What an owner is sure of behind `check`. */
  sure(check: (inbox: InboxAnswers) => Promise<void>): Promise<string> {
    const { asked } = this
    const log = {
      append: async (data: Uint8Array) => {
        asked.push('probe')
        const { packId, count } = readPackHeader(data)
        expect(count).to.equal(0)
        this.probes.push(packId)
        return this.answers.shift() ?? { kind: 'stored', seq: ++this.lastSeq, duplicate: false }
      },
      state: async () => ({ lastSeq: this.lastSeq - this.behind }),
      get: async () => undefined,
      async *range() {},
    } as unknown as Log
    const prove = async () => {
      asked.push('proof')
      if (this.fenced) throw new FencedError('another claim')
    }
    const randomness = { bytes: randomBytes }
    const asking = { inbox: log, journal: { prove }, clock: systemClock(), randomness, stopped: () => false }
    return sureOfInbox(asking, check).then(
      () => 'there',
      (error: Error) => (error instanceof LostTailError ? 'lost' : error.message),
    )
  }
}

describe('an owner that misses a message of the inbox', () => {
  it('takes no message for missing where a server has nothing from there on', async () => {
    const inbox = new Inbox(7)
    const check = async (answers: InboxAnswers) => {
      if (!(await answers.get(3))) throw new LostTailError('gone')
    }
    expect(await inbox.sure(check)).to.equal('a server that was behind has no messages from 3 to 8')
  })

  it('asks no more when it is there', async () => {
    const inbox = new Inbox(7)
    expect(await inbox.holds(7)).to.equal('there')
    expect(inbox.asked).to.deep.equal(['look'])
  })

  it('asks again behind a probe, and is sure behind a proof', async () => {
    const inbox = new Inbox(5)
    expect(await inbox.holds(7)).to.equal('lost')
    expect(inbox.asked).to.deep.equal(['look', 'probe', 'look', 'proof'])
  })

  it('believes no answer that is older than the probe, and sends another probe with the next question', async () => {
    const inbox = new Inbox(7)
    inbox.behind = 3
    expect(await inbox.holds(7)).to.equal('a server that was behind answered that the inbox ends at 5')
    // A power cut took the first one.
    inbox.lastSeq = 7
    inbox.behind = 1
    expect(await inbox.holds(7)).to.include('was behind')
    inbox.behind = 0
    expect(await inbox.holds(7)).to.equal('there')
    expect(new Set(inbox.probes).size).to.equal(2)
  })

  it('says nothing when another has claimed the shard since', async () => {
    const inbox = new Inbox(5)
    inbox.fenced = true
    expect(await inbox.holds(7)).to.equal('another claim')
  })

  it('looks again while the probe is not taken, and repeats the same one', async () => {
    const inbox = new Inbox(5)
    inbox.answers.push({ kind: 'full' }, { kind: 'unknown', error: 'no answer' })
    expect(await inbox.holds(7)).to.equal('lost')
    expect(inbox.asked).to.deep.equal(['look', 'probe', 'look', 'probe', 'look', 'probe', 'look', 'proof'])
    expect(new Set(inbox.probes).size).to.equal(1)
  })
})
