/** What an owner does with messages that it read before the broker was away. */
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Log, LogMessage } from '../../../internal/shard/broker.ts'
import { InboxReading, type InboxReadingOptions } from '../../../internal/shard/claim/inbox-reading.ts'

type Take = (messages: LogMessage[]) => void | Promise<void>

const message = (seq: number): LogMessage => ({ seq, at: 0, data: Buffer.alloc(0), msgId: null })

/** An inbox of which the test hands the messages over, and what got a place. */
function reading() {
  const follows: { from: number; take: Take; stopped: boolean }[] = []
  const placed: number[] = []
  const replay = { cursor: 5, highWater: null, replaying: false, until: 0 }
  const inbox = {
    follow(from: number, take: Take) {
      const follow = { from, take, stopped: false }
      follows.push(follow)
      return {
        async stop() {
          follow.stopped = true
        },
      }
    },
  } as unknown as Log
  const intake = {
    async take(messages: LogMessage[], isOld: () => boolean) {
      for (const { seq } of messages) {
        if (isOld()) return
        placed.push(seq)
        replay.cursor = seq + 1
        await Promise.resolve()
      }
    },
    stop: () => {},
  }
  const head = { firstSeq: 1, lastSeq: 9, messages: 9, bytes: 0, maxBytes: 0 }
  const parts = { inbox, intake, replay, head, ended: () => false, onFatal: () => {}, onProblem: () => {} }
  const made = new InboxReading(parts as unknown as InboxReadingOptions)
  made.begin()
  return { made, follows, placed }
}

describe('the reading of an inbox', () => {
  it('reads again, behind a reconnect, what was handed over and has no place yet', async () => {
    const { made, follows, placed } = reading()
    const handed = follows[0]!.take([message(5), message(6)])
    made.pause()
    await handed
    expect(placed).to.deep.equal([])
    expect([follows.length, follows[0]!.stopped]).to.deep.equal([1, true])
    made.goOn()
    expect(follows[1]!.from).to.equal(5)
    await follows[1]!.take([message(5)])
    expect(placed).to.deep.equal([5])
  })

  it('takes nothing more of what was read before', async () => {
    const { made, follows, placed } = reading()
    made.pause()
    await follows[0]!.take([message(5)])
    made.goOn()
    await follows[0]!.take([message(5)])
    expect(placed).to.deep.equal([])
  })

  it('does not begin to read at a reconnect', async () => {
    const { made, follows } = reading()
    await made.stop()
    made.pause()
    made.goOn()
    expect(follows).to.have.length(1)
  })
})
