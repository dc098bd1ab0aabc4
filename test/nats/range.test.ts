import { expect } from 'chai'
import { describe, it } from 'mocha'
import { readRange } from '../../internal/nats/log/range.ts'
import type { Log, LogMessage } from '../../internal/shard/broker.ts'
import { SteppedClock } from '../ingest/support.ts'

describe('a range of a log', () => {
  const message = (seq: number): LogMessage => ({ seq, at: 0, data: Buffer.alloc(0), msgId: null })

  it('ends where the broker does, when it lost its tail while it is read', async () => {
    const clock = new SteppedClock()
    let lastSeq = 9
    const log = {
      state: async () => ({ firstSeq: 1, lastSeq, messages: lastSeq, bytes: 0, maxBytes: 0 }),
      follow(_from: number, handler: (messages: LogMessage[]) => void) {
        handler([1, 2, 3, 4].map(message))
        lastSeq = 4
        return { stop: async () => {} }
      },
    } as Partial<Log> as Log
    const seen: number[] = []
    const reading = (async () => {
      for await (const { seq } of readRange(log, clock, 1, 9)) seen.push(seq)
    })()
    await clock.pass(2_500, 50)
    await reading
    expect(seen).to.deep.equal([1, 2, 3, 4])
  })
})
