import { expect } from 'chai'
import { beforeEach, describe, it } from 'mocha'
import { bufferToken, groupToken, shardOf } from '../../internal/domain/group.ts'
import { decodePack, readPackHeader } from '../../internal/domain/pack.ts'
import { encodeVerdict } from '../../internal/domain/verdict.ts'
import { Packer, type PackerOptions } from '../../internal/ingest/packer.ts'
import type { InboxUnavailableError, NewItem, Stored } from '../../internal/ingest/ports.ts'
import { HeldLog, LocalMessages, newItem, noTelemetry, randomness, SteppedClock, settled } from './support.ts'

function itemsOf(data: Uint8Array): string[] {
  const ids: string[] = []
  decodePack(data, ({ itemId }) => ids.push(itemId))
  return ids
}

/** A key whose group falls on this shard. */
function keyOn(shard: number, shards: number): string {
  const { bufferUid } = newItem()
  for (let i = 0; ; i++) if (shardOf(groupToken(bufferUid, `key-${i}`), shards) === shard) return `key-${i}`
}

describe('packer', () => {
  let clock: SteppedClock
  let messages: LocalMessages
  let logs: HeldLog[]
  let packer: Packer

  const make = (changes: Partial<PackerOptions> = {}) => {
    const shards = changes.shards ?? 1
    logs = Array.from({ length: shards }, () => new HeldLog())
    const logOf = (shard: number) => logs[shard]!
    const telemetry = noTelemetry
    packer = new Packer({
      shards,
      logOf,
      messages,
      clock,
      randomness,
      telemetry,
      subjects: 'group',
      afterTurn: queueMicrotask,
      ...changes,
    })
  }
  /** The fate of an append without waiting for it. */
  const watched = (item: NewItem) => {
    const fate: { stored?: Stored; error?: InboxUnavailableError } = {}
    packer.append(item).then(
      (stored) => {
        fate.stored = stored
      },
      (error) => {
        fate.error = error
      },
    )
    return fate
  }
  const log = () => logs[0]!
  /** Longer than packs keep apart. */
  const rest = () => clock.pass(2, 2)

  beforeEach(() => {
    clock = new SteppedClock()
    messages = new LocalMessages()
    make()
  })

  it('sends an item at rest alone and answers it after the PubAck, not before', async () => {
    const item = newItem()
    const fate = watched(item)
    await rest()
    expect(itemsOf(log().latest.data)).to.deep.equal([item.itemId])
    expect(fate).to.deep.equal({})
    log().store()
    await rest()
    expect(fate.stored).to.deep.equal({ duplicateOf: null })
  })

  it('tells of the end of each pack whether its broker answered', async () => {
    const ended: boolean[] = []
    make({ onEnded: (_shard, answered) => ended.push(answered) })
    const unknown = { kind: 'unknown', error: 'no answer in time' } as const
    for (const answer of [{ kind: 'stored', seq: 7, duplicate: false }, { kind: 'full' }, unknown] as const) {
      const told = ended.length
      watched(newItem())
      await rest()
      while (ended.length === told) {
        log().latest.answer(answer)
        await clock.pass(100)
      }
    }
    expect(ended).to.deep.equal([true, true, false])
  })

  it('has one append in flight: what arrives meanwhile is the next pack, in order', async () => {
    const items = Array.from({ length: 5 }, () => newItem())
    watched(items[0]!)
    await rest()
    const fates = items.slice(1).map(watched)
    await rest()
    expect(log().attempts).to.have.length(1)
    log().store()
    await rest()
    expect(itemsOf(log().latest.data)).to.deep.equal(items.slice(1).map(({ itemId }) => itemId))
    log().store()
    await rest()
    for (const { stored } of fates) expect(stored).to.deep.equal({ duplicateOf: null })
    expect(new Set(log().attempts.map(({ msgId }) => msgId)).size).to.equal(2)
    expect(readPackHeader(log().latest.data).packId).to.equal(log().latest.msgId)
  })

  it('makes one pack of what comes in one burst', async () => {
    for (let i = 0; i < 10; i++) watched(newItem())
    await rest()
    expect(log().attempts).to.have.length(1)
    expect(itemsOf(log().latest.data)).to.have.length(10)
  })

  it('lets nothing leave before the turn of the event loop ends, also what waited for the pack before', async () => {
    const turns: (() => void)[] = []
    make({ afterTurn: (task) => turns.push(task) })
    for (let i = 0; i < 3; i++) {
      watched(newItem())
      await settled()
    }
    expect(log().attempts).to.have.length(0)
    expect(turns).to.have.length(1)
    turns.pop()!()
    expect(itemsOf(log().latest.data)).to.have.length(3)
    await rest()
    watched(newItem())
    log().store()
    await settled()
    watched(newItem())
    expect(log().attempts).to.have.length(1)
    turns.pop()!()
    expect(itemsOf(log().latest.data)).to.have.length(2)
    expect(turns).to.have.length(0)
  })

  it('lets 1.5 ms pass between packs, and an item at rest wait for nothing', async () => {
    const send = async (count: number) => {
      for (let i = 0; i < count; i++) watched(newItem())
      await settled()
    }
    await send(1)
    log().store()
    await send(2)
    expect(log().attempts).to.have.length(1)
    await clock.advance(1)
    await send(1)
    expect(log().attempts).to.have.length(1)
    await clock.advance(0.5)
    await settled()
    expect(itemsOf(log().latest.data)).to.have.length(3)
    log().store()
    await rest()
    await send(1)
    expect(log().attempts).to.have.length(3)
  })

  it('fills packs up to 256 KB, and takes a larger item by itself', async () => {
    const sizes = [1_000, 100_000, 100_000, 100_000, 900_000, 1_000]
    for (const size of sizes) watched(newItem({ payload: Buffer.alloc(size, 0x31) }))
    const counts: number[] = []
    for (let sent = 0; sent < sizes.length; ) {
      await rest()
      const count = itemsOf(log().latest.data).length
      counts.push(count)
      sent += count
      log().store()
    }
    expect(counts).to.deep.equal([3, 1, 1, 1])
  })

  it('names the group in the subject when the pack holds one, else not', async () => {
    const [one, other] = [newItem(), newItem({ groupKey: 'order-2' })]
    watched(one)
    watched(newItem())
    await rest()
    const token = groupToken(one.bufferUid, one.groupKey)
    expect(log().latest.subject).to.equal(`items.0.${bufferToken(one.bufferUid)}.${token}`)
    log().store()
    watched(one)
    watched(other)
    await rest()
    expect(log().latest.subject).to.equal('items.0.mixed')
    make({ subjects: 'shard' })
    watched(one)
    await rest()
    expect(log().latest.subject).to.equal('items.0.mixed')
  })

  it('repeats an ambiguous append under the same id and bytes, and is content with a duplicate', async () => {
    const fate = watched(newItem())
    await rest()
    log().latest.answer({ kind: 'unknown', error: 'no answer in time' })
    await clock.pass(100)
    log().latest.answer({ kind: 'in-process' })
    await clock.pass(100)
    log().latest.answer({ kind: 'stored', seq: 7, duplicate: true })
    await rest()
    expect(fate.stored).to.deep.equal({ duplicateOf: null })
    expect(log().attempts).to.have.length(3)
    expect(new Set(log().attempts.map(({ msgId }) => msgId)).size).to.equal(1)
    expect(new Set(log().attempts.map(({ data }) => Buffer.from(data).toString('hex'))).size).to.equal(1)
  })

  it('gives up within 10 s, and goes on with what waited', async () => {
    const fate = watched(newItem())
    const answerAll = async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 100) {
        log().latest.answer({ kind: 'unknown', error: 'no responders' })
        await clock.pass(100)
      }
    }
    await rest()
    await answerAll(9_000)
    expect(fate).to.deep.equal({})
    const next = watched(newItem())
    await answerAll(1_000)
    expect(fate.error).to.include({ name: 'InboxUnavailableError', reason: 'unanswered' })
    expect(fate.error?.message).to.contain('no responders')
    const deadlines = log().attempts.map(({ timeoutMs }) => timeoutMs)
    expect(Math.max(...deadlines)).to.be.at.most(2_000)
    expect(Math.min(...deadlines)).to.be.above(0)
    log().store()
    await rest()
    expect(next.stored).to.deep.equal({ duplicateOf: null })
  })

  it('says at once that the inbox is full', async () => {
    const fate = watched(newItem({ explicit: true }))
    await rest()
    log().latest.answer({ kind: 'full' })
    await rest()
    expect(fate.error).to.include({ reason: 'full' })
    expect(log().attempts).to.have.length(1)
  })

  it('refuses what would not fit its memory', async () => {
    make({ maxWaitingBytes: 10_000 })
    watched(newItem({ payload: Buffer.alloc(20_000) }))
    await rest()
    const refused = watched(newItem())
    await rest()
    expect(refused.error).to.include({ reason: 'overloaded' })
    log().store()
    await rest()
    const taken = watched(newItem())
    await rest()
    log().store()
    await rest()
    expect(taken.stored).not.to.equal(undefined)
  })

  it('answers all of a pack that cannot be made, and goes on', async () => {
    const fate = watched(newItem({ itemId: 'no uuid' }))
    await rest()
    expect(fate.error?.message).to.contain('UUID')
    watched(newItem())
    await rest()
    expect(log().attempts).to.have.length(1)
  })

  it('drains before it closes', async () => {
    const fates = [watched(newItem())]
    await rest()
    fates.push(watched(newItem()))
    let closed = false
    const closing = packer.close().then(() => {
      closed = true
    })
    const late = watched(newItem())
    await rest()
    expect(late.error).to.include({ reason: 'closed' })
    log().store()
    await rest()
    expect(closed).to.equal(false)
    log().store()
    await closing
    for (const { stored } of fates) expect(stored).not.to.equal(undefined)
    expect(clock.pending).to.equal(0)
  })

  describe('with a cap on appends over all shards', () => {
    const shards = 4
    const send = (shard: number) => watched(newItem({ groupKey: keyOn(shard, shards) }))
    const sent = () => logs.map(({ attempts }) => attempts.length)

    beforeEach(() => make({ shards, maxInFlight: 2 }))

    it('sends no more at once, and serves shards in turn', async () => {
      for (const shard of [0, 1, 2, 3]) send(shard)
      await rest()
      expect(sent()).to.deep.equal([1, 1, 0, 0])
      send(0)
      logs[0]!.store()
      await rest()
      expect(sent()).to.deep.equal([1, 1, 1, 0])
      logs[1]!.store()
      await rest()
      expect(sent()).to.deep.equal([1, 1, 1, 1])
      logs[2]!.store()
      await rest()
      expect(sent()).to.deep.equal([2, 1, 1, 1])
    })

    it('does not let dead shards hold up the others', async () => {
      for (const shard of [0, 1, 2, 3]) send(shard)
      await clock.pass(150)
      expect(sent()).to.deep.equal([1, 1, 1, 1])
      logs[2]!.store()
      logs[3]!.store()
      await rest()
      send(2)
      await rest()
      expect(sent()).to.deep.equal([1, 1, 2, 1])
    })
  })

  describe('with explicit ids', () => {
    it('asks for a verdict, and answers the others of the pack without it', async () => {
      const [plain, explicit, duplicate] = [
        newItem(),
        newItem({ explicit: true }),
        newItem({ explicit: true }),
      ]
      const fates = [plain, explicit, duplicate].map(watched)
      await rest()
      const { replySubject, packId } = readPackHeader(log().latest.data)
      log().store()
      await rest()
      expect(fates.map(({ stored }) => stored !== undefined)).to.deep.equal([true, false, false])
      messages.publish(
        replySubject ?? '',
        encodeVerdict({ packId, duplicates: [{ index: 2, of: 'original' }] }),
      )
      await rest()
      expect(fates[1]?.stored).to.deep.equal({ duplicateOf: null })
      expect(fates[2]?.stored).to.deep.equal({ duplicateOf: 'original' })
    })

    it('names no reply subject without them', async () => {
      watched(newItem())
      await rest()
      expect(readPackHeader(log().latest.data).replySubject).to.equal(null)
    })
  })
})
