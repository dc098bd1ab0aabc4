/** What an owner notices while it claims its logs, in memory (docs/architecture/protocol.md, "Lost tail"). */
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { encodePack, readPackHeader } from '../../internal/domain/pack.ts'
import { PACK_ID_BYTES } from '../../internal/domain/pack-id.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { claimLogs } from '../../internal/shard/claimed-logs.ts'
import { encodeCommit, encodeRecord } from '../../internal/shard/journal/codec.ts'
import { LostTailError } from '../../internal/shard/lost-tail.ts'
import type { ShardEvents, ShardOptions } from '../../internal/shard/options.ts'
import { BOOT, uuid } from './journal-records.ts'
import { memoryArchive } from './memory-archive.ts'
import { memoryLog } from './memory-log.ts'
import { Stream } from './simulation/streams.ts'

const NOW = 1_000
const packOf = (number: number) => encodePack(Buffer.alloc(PACK_ID_BYTES, number), null, [])

describe('an owner that claims its logs', () => {
  let journal: Stream
  let inbox: Stream
  let reconnects: (() => void)[]
  let ends: Error[]

  /** An inbox with one pack, which the journal names by its high-water mark. */
  beforeEach(() => {
    inbox = new Stream({ windowMs: 0 })
    inbox.append(NOW, packOf(1), null)
    journal = new Stream({ windowMs: 0 })
    const highWater = { seq: inbox.lastSeq, packId: readPackHeader(packOf(1)).packId }
    const header = { boot: uuid(1), epoch: 0, at: NOW, highWater }
    journal.append(NOW, encodeCommit(header, [encodeRecord({ type: 'epoch' })]), null)
    reconnects = []
    ends = []
  })

  /** `onAnswer`: behind an answer about a message of the inbox. */
  function claim(onAnswer: () => Promise<void>) {
    const [journalLog, inboxLog, archive] = [
      memoryLog(() => journal),
      memoryLog(() => inbox),
      memoryArchive(),
    ]
    const get = async (seq: number) => {
      const found = await inboxLog.get(seq)
      await onAnswer()
      return found
    }
    const options = {
      shard: 0,
      broker: {
        journal: () => journalLog,
        inbox: () => ({ ...inboxLog, get }),
        archive: () => archive,
        onReconnect: (listener: () => void) => {
          reconnects.push(listener)
          return () => {}
        },
      },
      clock: systemClock(),
      randomness: { bytes: (count: number) => Buffer.alloc(count, 9) },
      boot: BOOT,
      claim: 1,
      limits: { housekeeping: {} },
      telemetry: { commit: () => {} },
      deadLetters: { raiseEpoch: async () => {} },
    } as unknown as ShardOptions
    const events = {
      ended: () => ends.length > 0,
      onCommit: () => {},
      onRefused: () => {},
      onProblem: () => {},
      onFatal: (error: Error) => ends.push(error),
    } as unknown as ShardEvents
    return claimLogs(options, events)
  }

  it('goes on where nothing is lost', async () => {
    const { replay } = await claim(async () => {})
    expect(replay.until).to.equal(inbox.lastSeq)
    expect(ends).to.deep.equal([])
  })

  it('is lost where a power cut takes the marked message behind the first look at it', async () => {
    let looked = false
    const claimed = claim(async () => {
      if (looked) return
      looked = true
      inbox.messages.pop()
      inbox.lastSeq--
      inbox.append(NOW, packOf(2), null)
      for (const reconnected of reconnects) reconnected()
      // Whoever listens has looked by then.
      for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate)
    })
    await claimed.catch(() => {})
    expect(ends[0]).to.be.instanceOf(LostTailError)
  })
})
