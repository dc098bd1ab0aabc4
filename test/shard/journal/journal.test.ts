/** The end of an owner's journal, on a log that answers when the test says so. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { Clock } from '../../../internal/runtime/clock.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import type { AppendAnswer, Log } from '../../../internal/shard/broker.ts'
import { decodeCommit, encodeRecord } from '../../../internal/shard/journal/codec.ts'
import { commitName } from '../../../internal/shard/journal/commit-name.ts'
import { Journal, JournalClosedError, type JournalOptions } from '../../../internal/shard/journal/journal.ts'
import type { JournalRecord } from '../../../internal/shard/journal/records.ts'
import { emptyState } from '../../../internal/shard/journal/state.ts'
import { LostTailError } from '../../../internal/shard/lost-tail.ts'
import { SteppedClock, settled } from '../../ingest/support.ts'
import { eventually } from '../../support/eventually.ts'
import { seal } from '../journal-records.ts'

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
  const horizon = (seq: number): JournalRecord => ({ type: 'horizon', seq })

  function journalOn(
    log: Log,
    clock: Clock = systemClock(),
    given: Partial<Pick<JournalOptions, 'onRefused' | 'claimAgain' | 'highWater'>> = {},
  ): Journal {
    const state = emptyState()
    return new Journal({
      shard: 0,
      log,
      clock,
      boot: randomUUID(),
      writer: 'w',
      epoch: EPOCH,
      state: () => state,
      highWater: () => null,
      claimAgain: async () => Number.NaN,
      onCommit: () => {},
      onRefused: () => {},
      onLost: () => {},
      ...given,
    })
  }

  it('commits what nobody waits for with what somebody does, before it when it was written before', async () => {
    const { log, stored, answer } = heldLog()
    const clock = new SteppedClock()
    const journal = journalOn(log, clock)
    const order: string[] = []
    journal.writeSoon(horizon(1), () => order.push('soon'))
    await settled()
    expect(stored).to.have.lengthOf(0)
    journal.write(horizon(2), () => order.push('now'))
    await settled()
    expect(stored.map((data) => decodeCommit(data).records)).to.deep.equal([[horizon(1), horizon(2)]])
    answer()
    await settled()
    expect(order).to.deep.equal(['soon', 'now'])
    expect([clock.pending, journal.idle]).to.deep.equal([0, true])
  })

  it('commits it by itself within 5 ms, and behind a commit in flight at once when it is over', async () => {
    const { log, stored, answer } = heldLog()
    const clock = new SteppedClock()
    const journal = journalOn(log, clock)
    journal.writeSoon(horizon(1))
    await clock.pass(4, 1)
    expect([stored.length, journal.idle]).to.deep.equal([0, false])
    await clock.pass(1)
    expect(stored).to.have.lengthOf(1)
    journal.writeSoon(horizon(2))
    await clock.pass(10, 1)
    answer()
    await settled()
    expect(stored).to.have.lengthOf(2)
    journal.writeSoon(horizon(3))
    answer()
    await settled()
    expect(stored).to.have.lengthOf(2)
    await journal.close()
    await clock.pass(10, 1)
    expect([stored.length, clock.pending]).to.deep.equal([2, 0])
  })

  it('puts records of at most 10,000 positions into one commit, which is applied in one turn, but a larger one alone', async () => {
    const { log, stored, answer } = heldLog()
    const journal = journalOn(log)
    let last: Promise<number> = Promise.resolve(0)
    for (const [n, count] of [6_000, 5_000, 20_000, 1].entries()) {
      const positions = Array.from({ length: count }, (_, index) => ({ seq: 1_000 + n, index }))
      last = journal.commit({ type: 'discard', batch: null, positions })
    }
    while (stored.length < 4) {
      await settled()
      answer()
    }
    await last
    expect(stored.map((data) => decodeCommit(data).records.length)).to.deep.equal([1, 1, 1, 1])
  })

  it('puts one seal of a group, and one keep, into a commit: by its sequence both are named', async () => {
    const { log, stored, answer } = heldLog()
    const journal = journalOn(log)
    const keep: JournalRecord = { type: 'keep', items: [] }
    const seals = [0, 1, 0].map((group, index) => seal(group, [{ seq: 1, index }]))
    for (const record of [...seals, keep, keep]) journal.write(record)
    for (let commit = 0; commit < 3; commit++) {
      await settled()
      answer()
    }
    await settled()
    const types = stored.map((data) => decodeCommit(data).records.map(({ type }) => type))
    expect(types).to.deep.equal([['seal', 'seal'], ['seal', 'keep'], ['keep']])
  })

  it('tells each record of a commit its own fate, also behind records that nobody asks about', async () => {
    const { log, answer } = heldLog()
    const journal = journalOn(log)
    const fates: boolean[] = []
    const told = (_: number, applied: boolean) => fates.push(applied)
    journal.write(horizon(5))
    journal.write(horizon(3), told)
    const proof = journal.prove()
    journal.write(horizon(8), told)
    journal.write(horizon(8), told)
    await settled()
    answer()
    await proof
    expect(fates).to.deep.equal([false, true, false])
  })

  it('names its last commit once the broker stored it', async () => {
    const { log, stored, answer } = heldLog()
    const journal = journalOn(log)
    const first = journal.commit(horizon(1))
    await settled()
    answer()
    const seq = await first
    const name = commitName(seq, Buffer.from(stored[0]!))
    expect(journal.last).to.deep.equal(name)
    const second = journal.commit(horizon(2))
    await settled()
    expect(journal.last, 'while another is in flight').to.deep.equal(name)
    answer()
    await second
    expect(journal.last.seq).to.equal(seq + 1)
  })

  it('carries the high-water mark in each commit that may name a position above the last one', async () => {
    const { log, stored, answer } = heldLog()
    let seq = 5
    const journal = journalOn(log, systemClock(), { highWater: () => ({ seq, packId: `pack ${seq}` }) })
    for (const mark of [5, 5, 6]) {
      seq = mark
      const committed = journal.commit(horizon(1))
      await settled()
      answer()
      await committed
    }
    const marks = stored.map((data) => decodeCommit(data).highWater?.seq)
    expect(marks).to.deep.equal([5, undefined, 6])
  })

  it('asks again when a commit is refused that expected the last message there is', async () => {
    const answers: AppendAnswer[] = [{ kind: 'wrong-sequence' }, { kind: 'stored', seq: 9, duplicate: false }]
    const log = {
      append: async () => answers.shift()!,
      last: async () => ({ seq: EPOCH, at: 0, data: Buffer.alloc(0), msgId: 'the claim' }),
      get: async () => undefined,
    } as Partial<Log> as Log
    expect(await journalOn(log).commit(horizon(1))).to.equal(9)
    expect(answers).to.deep.equal([])
  })

  describe('of which a server says that it ends before the last own commit', () => {
    /** Rejections of a commit, after 5 s; `claim`: where the broker stores another claim of the owner. */
    async function endsOf(claim: number): Promise<unknown[]> {
      const clock = new SteppedClock()
      const log = {
        append: async () => ({ kind: 'wrong-sequence' }) as AppendAnswer,
        last: async () => ({ seq: EPOCH - 2, at: 0, data: Buffer.alloc(0), msgId: 'one before' }),
        get: async () => undefined,
      } as Partial<Log> as Log
      const ends: unknown[] = []
      const committed = journalOn(log, clock, { claimAgain: async () => claim }).commit(horizon(1))
      committed.catch((error: unknown) => ends.push(error))
      await clock.pass(4_900, 50)
      expect(ends).to.deep.equal([])
      await clock.pass(200, 50)
      return ends
    }

    it('is lost when the broker stores another claim in its place', async () => {
      const [end, ...others] = await endsOf(EPOCH)
      expect(others).to.deep.equal([])
      expect(end).to.be.instanceOf(LostTailError)
    })

    it('is claimed again when the broker stores another claim behind it', async () => {
      const [end, ...others] = await endsOf(EPOCH + 1)
      expect(others).to.deep.equal([])
      expect(end).to.be.instanceOf(Error).and.not.instanceOf(LostTailError)
    })
  })

  it('is not short when a commit is stored while the broker tells where it ends', async () => {
    const { log, answer } = heldLog()
    const clock = new SteppedClock()
    const ends: (() => void)[] = []
    let [claims, asked] = [0, 0]
    const journal = journalOn(
      Object.assign(log, {
        state: () => {
          const lastSeq = journal.lastSeq
          const state = { firstSeq: lastSeq + 1, lastSeq }
          // Where it begins is asked at once, because the commit was purged.
          return asked++ % 2 > 0 ? state : new Promise((resolve) => ends.push(() => resolve(state)))
        },
        get: async () => undefined,
      }),
      clock,
      { claimAgain: async () => ++claims },
    )
    for (const seq of [1, 2]) {
      const checked = journal.checkTail()
      const committed = journal.commit(horizon(seq))
      await settled()
      answer()
      await committed
      ends.shift()!()
      await checked
      await clock.pass(60_000, 60_000)
    }
    expect(claims).to.equal(0)
  })

  it('does not take its last commit for purged where a server does not have it yet', async () => {
    let firstSeq = 1
    const log = {
      state: async () => ({ firstSeq, lastSeq: EPOCH }),
      get: async () => undefined,
    } as unknown as Log
    const journal = journalOn(log)
    const error = await journal.checkTail().catch((reason: unknown) => reason)
    expect(error).to.be.instanceOf(Error).and.not.instanceOf(LostTailError)
    firstSeq = EPOCH + 1
    await journal.checkTail()
  })

  it('goes on when that leader is up to date in time', async () => {
    const clock = new SteppedClock()
    let upToDate = false
    const log = {
      append: async () =>
        (upToDate
          ? { kind: 'stored', seq: 9, duplicate: false }
          : { kind: 'wrong-sequence' }) as AppendAnswer,
      last: async () => ({ seq: EPOCH - 2, at: 0, data: Buffer.alloc(0), msgId: 'one before' }),
    } as Partial<Log> as Log
    const committed = journalOn(log, clock).commit(horizon(1))
    await clock.pass(4_000, 50)
    upToDate = true
    await clock.pass(100, 50)
    expect(await committed).to.equal(9)
  })

  describe('behind a reconnect', () => {
    /** Appends are answered by `answers`, then stored; whether the tail is there says `tail`. */
    function reconnecting(answers: AppendAnswer[] = []) {
      const clock = new SteppedClock()
      const types: string[][] = []
      const tail = Promise.withResolvers<void>()
      const log = {
        append: async (data: Uint8Array) => {
          types.push(decodeCommit(data).records.map(({ type }) => type))
          return answers.shift() ?? { kind: 'stored', seq: EPOCH + types.length, duplicate: false }
        },
        state: async () => {
          await tail.promise
          return { firstSeq: EPOCH + 50, lastSeq: EPOCH + 100 }
        },
        get: async () => undefined,
      } as unknown as Log
      const journal = journalOn(log, clock)
      return { clock, types, journal, seeTail: tail.resolve }
    }
    const UNKNOWN: AppendAnswer = { kind: 'unknown', error: 'disconnected' }

    it('sends nothing, and repeats nothing, before both logs were seen', async () => {
      const { clock, types, journal, seeTail } = reconnecting([UNKNOWN])
      journal.write({ type: 'seen', upTo: 1, writers: [] })
      await settled()
      journal.reconnected()
      journal.write(horizon(1))
      const inbox = Promise.withResolvers<void>()
      const seen = journal.seeAgain(() => inbox.promise)
      await clock.pass(60_000, 50)
      seeTail()
      await clock.pass(60_000, 50)
      expect(types).to.deep.equal([['seen']])
      inbox.resolve()
      await seen
      await clock.pass(50, 50)
      expect(types.slice(1)).to.deep.equal([['seen'], ['horizon']])
    })

    it('proves before the inbox was seen, behind what is in flight, and not before the journal was seen', async () => {
      const { clock, types, journal, seeTail } = reconnecting([UNKNOWN])
      journal.write({ type: 'seen', upTo: 1, writers: [] })
      await settled()
      journal.reconnected()
      journal.write(horizon(1))
      const proof = journal.prove()
      const seen = journal.seeAgain(() => proof)
      await clock.pass(60_000, 50)
      expect(types).to.have.lengthOf(1)
      seeTail()
      await clock.pass(50, 50)
      await seen
      await settled()
      expect(types.slice(1)).to.deep.equal([['seen'], [], ['horizon']])
    })

    it('waits for another look behind another reconnect', async () => {
      const { types, journal, seeTail } = reconnecting()
      seeTail()
      journal.reconnected()
      const inbox = Promise.withResolvers<void>()
      const seen = journal.seeAgain(() => inbox.promise)
      journal.reconnected()
      journal.write(horizon(1))
      inbox.resolve()
      await seen
      await settled()
      expect(types).to.deep.equal([])
      await journal.seeAgain(async () => {})
      await settled()
      expect(types).to.deep.equal([['horizon']])
    })
  })

  it('tells after 5 s, and then every 30 s, that its commit is not taken', async () => {
    const clock = new SteppedClock()
    const log = { append: async () => ({ kind: 'full' }) as AppendAnswer } as Partial<Log> as Log
    const told: string[] = []
    const journal = journalOn(log, clock, { onRefused: ({ message }) => told.push(message) })
    journal.write(horizon(1))
    await clock.pass(4_900, 50)
    expect(told).to.deep.equal([])
    await clock.pass(200, 50)
    expect(told).to.deep.equal(['the journal does not take a commit: full'])
    await clock.pass(29_000, 50)
    expect(told).to.have.lengthOf(1)
    await clock.pass(2_000, 50)
    expect(told).to.have.lengthOf(2)
    await Promise.all([journal.close(), clock.pass(100, 50)])
  })

  it('writes nothing behind its release, by which the next owner knows that it may claim', async () => {
    const { log, stored, answer } = heldLog()
    const journal = journalOn(log)
    const release = journal.commit({ type: 'release', batches: [] })
    await eventually(() => stored.length === 1)
    const late = journal.prove().catch((error: unknown) => error)
    answer()
    await release
    expect(await late).to.be.instanceOf(JournalClosedError)
    await journal.close()
    expect(stored.map((data) => decodeCommit(data).records.at(-1)?.type)).to.deep.equal(['release'])
  })

  describe('on a log without room', () => {
    const discard: JournalRecord = { type: 'discard', batch: null, positions: [] }
    const drop: JournalRecord = {
      type: 'drop',
      position: { seq: 1, index: 0 },
      itemId: randomUUID(),
      originalItemId: randomUUID(),
    }
    const MAX_BYTES = 100_000

    /** It answers all appends at once. */
    function filledLog() {
      const types: string[][] = []
      const at = { bytes: 0, behind: 0 }
      const log = {
        append: async (data: Uint8Array) => {
          const seq = EPOCH + types.push(decodeCommit(data).records.map(({ type }) => type))
          return { kind: 'stored', seq, duplicate: false } as AppendAnswer
        },
        state: async () => {
          const lastSeq = EPOCH + types.length - at.behind
          return { firstSeq: 1, lastSeq, messages: 1, bytes: at.bytes, maxBytes: MAX_BYTES }
        },
      } as Partial<Log> as Log
      return { log, types, at }
    }

    async function lookAt(journal: Journal, at: { bytes: number }, share: number): Promise<void> {
      at.bytes = MAX_BYTES * share
      await journal.look()
      await settled()
    }

    it('holds back all records, in their order, and lets what is carried forward pass them', async () => {
      const { log, types, at } = filledLog()
      const journal = journalOn(log)
      await lookAt(journal, at, 0.87)
      for (const record of [discard, drop, horizon(1)]) journal.write(record)
      await journal.carry({ type: 'keep', items: [] }, () => {})
      expect(types).to.deep.equal([['keep']])
      expect([journal.isFull, journal.holdsBack, journal.idle]).to.deep.equal([true, true, false])
      await lookAt(journal, at, 0.5)
      expect(types.slice(1)).to.deep.equal([['discard', 'drop', 'horizon']])
      expect([journal.isFull, journal.holdsBack, journal.idle]).to.deep.equal([false, false, true])
    })

    it('believes no server that was behind: it knows of fewer bytes', async () => {
      const { log, types, at } = filledLog()
      const journal = journalOn(log)
      await lookAt(journal, at, 0.87)
      journal.write(discard)
      await journal.prove()
      at.behind = 1
      const error = await lookAt(journal, at, 0.5).catch((reason: Error) => reason)
      expect((error as Error).message).to.equal(
        'a server that was behind answered that the journal ends at 7',
      )
      expect([types, journal.isFull]).to.deep.equal([[[]], true])
    })

    it('counts records in the queue', async () => {
      const { log, at } = filledLog()
      const journal = journalOn(log)
      await lookAt(journal, at, 0.5)
      const before = journal.left('commits')
      journal.write(discard)
      expect(before - journal.left('commits')).to.equal(encodeRecord(discard).length)
      await settled()
    })

    it('flushes and releases nothing before the records that are held back', async () => {
      const { log, types, at } = filledLog()
      const journal = journalOn(log)
      await lookAt(journal, at, 0.87)
      journal.write(discard)
      let flushed = false
      void journal.flush().then(() => (flushed = true))
      journal.write({ type: 'release', batches: [] })
      await settled()
      expect([types, flushed]).to.deep.equal([[], false])
      await lookAt(journal, at, 0.5)
      expect([types, flushed]).to.deep.equal([[['discard', 'release']], true])
    })

    it('proves at once, also while records are held back', async () => {
      const { log, types, at } = filledLog()
      const journal = journalOn(log)
      await lookAt(journal, at, 0.96)
      journal.write(discard)
      journal.write(drop)
      await journal.prove()
      expect(types).to.deep.equal([[]])
    })

    it('tells of what it holds back after 5 s, and drops it at its end', async () => {
      const { log, at } = filledLog()
      const clock = new SteppedClock()
      const told: string[] = []
      const journal = journalOn(log, clock, { onRefused: ({ message }) => told.push(message) })
      await lookAt(journal, at, 0.87)
      const waiting = journal.commit(discard).catch((error: unknown) => error)
      await lookAt(journal, at, 0.87)
      expect(told).to.deep.equal([])
      await clock.pass(5_000)
      await lookAt(journal, at, 0.87)
      expect(told).to.deep.equal(['the journal does not take a commit: full'])
      await journal.close()
      expect(await waiting).to.be.instanceOf(JournalClosedError)
    })
  })
})
