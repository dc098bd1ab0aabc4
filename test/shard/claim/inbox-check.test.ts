/** What an owner must know before it says that an inbox lost messages (docs/architecture/protocol.md, "Lost tail"). */
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { encodePack, readPackHeader } from '../../../internal/domain/pack.ts'
import { PACK_ID_BYTES } from '../../../internal/domain/pack-id.ts'
import { systemClock } from '../../../internal/runtime/system-clock.ts'
import type { AppendAnswer, Log, LogMessage } from '../../../internal/shard/broker.ts'
import { checkInbox, type InboxCheck } from '../../../internal/shard/claim/inbox-check.ts'
import { emptyState, type FoldState } from '../../../internal/shard/journal/state.ts'
import { LostTailError } from '../../../internal/shard/lost-tail.ts'
import { FencedError } from '../../../internal/shard/ports.ts'

/** Of the last message that an owner saw. */
const SEQ = 20
const SEEN = Buffer.alloc(PACK_ID_BYTES, 1)
const MARK = { seq: SEQ, packId: SEEN.toString('base64url') }

describe('an inbox of which an owner saw a message', () => {
  let messages: LogMessage[]
  let firstSeq: number
  let lastSeq: number
  /** Of each next answer: how many of the last messages its server lacks. */
  let behind: number[]
  /** To probes; past them they are stored. */
  let answers: AppendAnswer[]
  let probes: string[]
  /** In the order in which they came. */
  let asked: string[]
  let told: string[]
  let fenced: boolean
  let clock: InboxCheck['clock']
  let state: FoldState

  const add = (packId: Buffer) =>
    messages.push({ seq: ++lastSeq, at: 0, data: encodePack(packId, null, []), msgId: null })

  beforeEach(() => {
    ;[messages, behind, answers, probes, asked, told] = [[], [], [], [], [], []]
    ;[firstSeq, lastSeq, fenced, clock, state] = [SEQ, SEQ - 1, false, systemClock(), emptyState()]
    state.horizon = SEQ
    add(SEEN)
  })

  const log = {
    append: async (data: Uint8Array) => {
      asked.push('probe')
      const { packId, count } = readPackHeader(data)
      expect(count).to.equal(0)
      probes.push(packId)
      const answer = answers.shift()
      if (answer) return answer
      add(Buffer.from(packId, 'base64url'))
      return { kind: 'stored', seq: lastSeq, duplicate: false }
    },
    state: async () => {
      asked.push('look')
      return { firstSeq, lastSeq: lastSeq - (behind.shift() ?? 0), messages: 1, bytes: 0, maxBytes: 0 }
    },
    get: async (seq: number) => messages.find((message) => message.seq === seq),
    async *range(from: number, to: number) {
      yield* messages.filter(({ seq }) => seq >= from && seq <= to)
    },
  } as unknown as Log

  /** `there`, `lost`, or why that is not known. */
  async function verdict(): Promise<string> {
    const check = {
      inbox: log,
      shard: 0,
      journal: {
        prove: async () => {
          asked.push('proof')
          if (fenced) throw new FencedError('another claim')
        },
      },
      clock,
      randomness: { bytes: randomBytes, fraction: () => 0 },
      stopped: () => false,
      onRefused: ({ message }: Error) => void told.push(message),
    }
    return checkInbox(check, state, MARK).then(
      () => 'there',
      (error: Error) => (error instanceof LostTailError ? 'lost' : error.message),
    )
  }

  /** The messages behind `SEQ - 1` are gone. */
  const cut = () => {
    messages = []
    lastSeq = SEQ - 1
  }

  it('is asked once when it has it', async () => {
    add(randomBytes(PACK_ID_BYTES))
    expect(await verdict()).to.equal('there')
    expect(asked).to.deep.equal(['look'])
  })

  it('has lost nothing where it was purged', async () => {
    ;[firstSeq, messages, state.horizon] = [SEQ + 1, [], SEQ + 1]
    expect(await verdict()).to.equal('there')
  })

  it('has lost nothing where it is purged while it is looked for', async () => {
    add(randomBytes(PACK_ID_BYTES))
    messages.shift()
    state.horizon = SEQ + 1
    expect(await verdict()).to.equal('there')
  })

  it('has lost it where a probe does not come to stand behind it, and a proof follows', async () => {
    cut()
    expect(await verdict()).to.equal('lost')
    expect(asked).to.deep.equal(['look', 'probe', 'proof'])
  })

  it('has lost it where another one stands there, whatever a full inbox takes', async () => {
    cut()
    add(randomBytes(PACK_ID_BYTES))
    answers.push({ kind: 'full' })
    expect(await verdict()).to.equal('lost')
    expect(asked).to.deep.equal(['look', 'proof'])
  })

  it('has lost it where none stands there, and nobody may have purged it', async () => {
    add(randomBytes(PACK_ID_BYTES))
    messages.shift()
    expect(await verdict()).to.equal('lost')
  })

  it('has lost what stood below its beginning and was not over', async () => {
    firstSeq = SEQ + 1
    expect(await verdict()).to.equal('lost')
    expect(asked).to.deep.equal(['look', 'proof'])
  })

  it('has lost nothing where a server was behind', async () => {
    behind.push(1)
    expect(await verdict()).to.equal('there')
    expect(asked).to.deep.equal(['look', 'probe', 'look'])
  })

  it('is not known where a server stays behind the probe, and the next question sends another one', async () => {
    behind.push(1, 2)
    expect(await verdict()).to.equal('a server that was behind answered that the inbox ends at 19')
    behind.push(2)
    expect(await verdict()).to.equal('there')
    expect(new Set(probes).size).to.equal(2)
  })

  it('is not known to an owner whose shard another has claimed', async () => {
    cut()
    fenced = true
    expect(await verdict()).to.equal('another claim')
  })

  it('is asked again while it is full, and that is told after 5 s', async () => {
    cut()
    const { after } = systemClock()
    const times = [0, 0, 5_000]
    clock = { ...clock, after: (_, run) => after(0, run), monotonic: () => times.shift() ?? 5_100 }
    answers.push({ kind: 'full' }, { kind: 'full' }, { kind: 'full' })
    expect(await verdict()).to.equal('lost')
    expect(told).to.deep.equal(['the inbox takes no probe: full'])
  })
})
