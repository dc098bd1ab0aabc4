import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { type Ask, decodeAsk, encodeAnswer, encodeVerdict, type Fate } from '../../internal/domain/verdict.ts'
import type { Stored } from '../../internal/ingest/ports.ts'
import { Verdicts } from '../../internal/ingest/verdicts.ts'
import { LocalMessages, randomness, SteppedClock, settled } from './support.ts'

describe('verdicts', () => {
  let clock: SteppedClock
  let messages: LocalMessages
  let verdicts: Verdicts
  let packs: number

  beforeEach(() => {
    clock = new SteppedClock()
    messages = new LocalMessages()
    verdicts = new Verdicts({ messages, clock, randomness })
    packs = 0
  })

  /** A pack with this many explicit items on shard 3, before its append. */
  function pack(items = 1): { id: string; stored: (Stored | undefined)[]; late: (string | undefined)[] } {
    const id = `pack-${packs++}`
    const fate: { id: string; stored: (Stored | undefined)[]; late: (string | undefined)[] } = {
      id,
      stored: [],
      late: [],
    }
    const awaited = Array.from({ length: items }, (_, index) => ({
      index,
      itemId: `${id}/${index}`,
      settle: (stored: Stored) => {
        expect(fate.stored[index], 'settled twice').to.equal(undefined)
        fate.stored[index] = stored
        void stored.late?.then((outcome) => {
          fate.late[index] = outcome
        })
      },
    }))
    verdicts.expect(id, 3, awaited)
    return fate
  }
  const rule = (packId: string, duplicates: { index: number; of: string }[] = []) =>
    messages.publish(verdicts.replySubject, encodeVerdict({ packId, duplicates }))
  const asks = () => messages.sent.filter(({ subject }) => subject === 'shard.3.ask')
  const lastAsk = (): Ask => decodeAsk(asks().at(-1)!.data)!
  const reply = (fates: Fate[], id = lastAsk().id) =>
    messages.publish(asks().at(-1)!.reply ?? '', encodeAnswer({ kind: 'position', id, fates }))

  it('wait for the owner', async () => {
    const one = pack(2)
    verdicts.stored(one.id, 7)
    await clock.pass(900)
    expect(one.stored).to.deep.equal([])
    rule(one.id, [{ index: 1, of: 'duplicate' }])
    expect(one.stored).to.deep.equal([{ duplicateOf: null }, { duplicateOf: 'duplicate' }])
  })

  it('may come before the PubAck, but nobody is answered before that', () => {
    const one = pack()
    rule(one.id, [{ index: 0, of: 'duplicate' }])
    expect(one.stored).to.deep.equal([])
    verdicts.stored(one.id, 7)
    expect(one.stored).to.deep.equal([{ duplicateOf: 'duplicate' }])
  })

  it('are not waited for longer than a second; what comes later is told as late', async () => {
    const one = pack(2)
    verdicts.stored(one.id, 7)
    await clock.pass(1_100)
    expect(one.stored.map((stored) => stored?.duplicateOf)).to.deep.equal([null, null])
    rule(one.id, [{ index: 0, of: 'duplicate' }])
    await settled()
    expect(one.late).to.deep.equal(['duplicate', 'new'])
    await clock.pass(100)
    expect(clock.pending).to.equal(0)
  })

  it('after one silence are not waited for at all, until the owner is heard', async () => {
    const first = pack()
    verdicts.stored(first.id, 7)
    await clock.pass(1_100)
    const second = pack()
    verdicts.stored(second.id, 8)
    expect(second.stored[0]?.late).not.to.equal(undefined)
    rule(second.id)
    await settled()
    expect(second.late).to.deep.equal(['new'])
    const third = pack()
    verdicts.stored(third.id, 9)
    expect(third.stored).to.deep.equal([])
  })

  it('hold one shard for silent, not the others', async () => {
    const first = pack()
    verdicts.stored(first.id, 7)
    await clock.pass(1_100)
    let settledOther = false
    verdicts.expect('other', 4, [{ index: 0, itemId: 'x', settle: () => (settledOther = true) }])
    verdicts.stored('other', 8)
    await clock.pass(500)
    expect(settledOther).to.equal(false)
  })

  it('are asked for with back-off, by position and item, and learnt piece by piece', async () => {
    const one = pack(3)
    verdicts.stored(one.id, 7)
    await clock.pass(2_200)
    expect(lastAsk()).to.deep.include({ kind: 'position', seq: 7 })
    expect(asks()).to.have.length(1)
    reply([{ kind: 'duplicate', of: 'duplicate' }, { kind: 'unknown' }, { kind: 'new' }])
    await settled()
    expect(one.late).to.deep.equal(['duplicate', undefined, 'new'])
    await clock.pass(2_500)
    expect(asks()).to.have.length(2)
    expect(lastAsk()).to.deep.include({ items: [{ index: 1, itemId: `${one.id}/1` }] })
    const past = lastAsk().id
    await clock.pass(4_500)
    reply([{ kind: 'duplicate', of: 'duplicate' }], past)
    await settled()
    expect(one.late[1], 'an answer to a question that was asked anew').to.equal(undefined)
    reply([{ kind: 'new' }])
    await settled()
    expect(one.late).to.deep.equal(['duplicate', 'new', 'new'])
  })

  it('stay unknown after a minute', async () => {
    const one = pack()
    verdicts.stored(one.id, 7)
    await clock.pass(59_000, 50)
    expect(one.late).to.deep.equal([])
    await clock.pass(1_100, 50)
    expect(one.late).to.deep.equal(['unknown'])
    expect(asks().length).to.be.within(4, 8)
    rule(one.id)
    expect(clock.pending).to.equal(0)
  })

  it('are given up, the oldest first, when too many are late', async () => {
    const first = pack()
    verdicts.stored(first.id, 1)
    await clock.pass(1_100)
    const others = Array.from({ length: 10_000 }, () => pack())
    for (const { id } of others) verdicts.stored(id, 2)
    await settled()
    expect(first.late).to.deep.equal(['unknown'])
    expect(others[0]?.late).to.deep.equal([])
  })

  it('forget a pack whose append failed, and foreign or broken messages', async () => {
    const one = pack()
    verdicts.forget(one.id)
    rule(one.id)
    messages.publish(verdicts.replySubject, Buffer.from('{'))
    rule('nobody knows it')
    await clock.pass(2_000)
    expect(one.stored).to.deep.equal([])
    expect(clock.pending).to.equal(0)
  })

  it('find duplicates, find none, and find nobody', async () => {
    const seen: unknown[] = []
    const find = () => void verdicts.findOriginal(3, 'group', 'id').then((found) => seen.push(found))
    const tell = (itemId: string | null) =>
      messages.publish(
        asks().at(-1)!.reply ?? '',
        encodeAnswer({ kind: 'original', id: lastAsk().id, itemId }),
      )
    find()
    expect(lastAsk()).to.deep.include({ kind: 'original', groupToken: 'group', messageId: 'id' })
    tell('original')
    find()
    tell(null)
    find()
    await clock.pass(1_100)
    expect(seen).to.deep.equal(['original', null, undefined])
    expect(clock.pending).to.equal(0)
  })

  it('are asked for at once when they are closed, and waited for', async () => {
    const [silent, waiting] = [pack(), pack()]
    verdicts.stored(silent.id, 7)
    await clock.pass(1_100)
    verdicts.stored(waiting.id, 8)
    const before = asks().length
    let closed = false
    void verdicts.close().then(() => {
      closed = true
    })
    expect(waiting.stored[0]?.duplicateOf, 'nobody is kept waiting for an answer').to.equal(null)
    expect(asks()).to.have.length(before + 2)
    reply([{ kind: 'unknown' }])
    await clock.pass(200)
    expect(asks(), 'the owner has not read it yet').to.have.length.above(before + 2)
    rule(silent.id)
    reply([{ kind: 'duplicate', of: 'original' }])
    await settled()
    expect([silent.late, waiting.late, closed]).to.deep.equal([['new'], ['duplicate'], true])
    expect(clock.pending).to.equal(0)
  })

  it('settle everything when they are closed', async () => {
    const waiting = pack()
    verdicts.stored(waiting.id, 7)
    let duplicate: unknown = 'open'
    void verdicts.findOriginal(3, 'g', 'm').then((found) => {
      duplicate = found
    })
    let closed = false
    void verdicts.close().then(() => {
      closed = true
    })
    await clock.pass(2_900)
    expect([waiting.late, closed]).to.deep.equal([[], false])
    await clock.pass(100)
    expect(closed).to.equal(true)
    expect(waiting.stored[0]?.duplicateOf).to.equal(null)
    expect(waiting.late).to.deep.equal(['unknown'])
    expect(duplicate).to.equal(undefined)
    expect(clock.pending).to.equal(0)
  })
})
