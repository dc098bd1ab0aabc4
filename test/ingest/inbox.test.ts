/** Packs and verdicts over the real broker, with an owner that knows nothing but its part of the protocol. */
import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { decodePack, readPackHeader } from '../../internal/domain/pack.ts'
import { askSubject, decodeAsk, encodeAnswer, encodeVerdict } from '../../internal/domain/verdict.ts'
import { Packer } from '../../internal/ingest/packer.ts'
import type { NewItem, Stored } from '../../internal/ingest/ports.ts'
import type { NatsBroker } from '../../internal/nats/broker.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { NatsProxy } from '../support/nats-proxy.ts'
import { natsAccount, ownNats } from '../support/servers.ts'
import { newItem, noTelemetry, randomness } from './support.ts'

const SHARDS = 2

/** Reads both inboxes in order and tells duplicates, without a journal. */
class BareOwner {
  /** itemId of the first item, by group and message id. */
  readonly #originals = new Map<string, string>()
  readonly #broker: NatsBroker
  readonly #ends: (() => unknown)[] = []
  verdicts = 0

  static async over(broker: NatsBroker): Promise<BareOwner> {
    const owner = new BareOwner(broker)
    for (let shard = 0; shard < SHARDS; shard++) await owner.#own(shard)
    return owner
  }

  constructor(broker: NatsBroker) {
    this.#broker = broker
  }

  stop(): void {
    for (const end of this.#ends) end()
  }

  async #own(shard: number): Promise<void> {
    const inbox = this.#broker.inbox(shard)
    const { firstSeq } = await inbox.state()
    const reading = inbox.follow(
      firstSeq,
      (messages) => messages.forEach(({ data }) => void this.#read(data)),
      () => {},
    )
    const unsubscribe = this.#broker.subscribe(askSubject(shard), (data, reply) => {
      const ask = decodeAsk(data)
      if (ask?.kind !== 'original' || reply === undefined) return
      const itemId = this.#originals.get(`${ask.groupToken}/${ask.messageId}`) ?? null
      this.#broker.publish(reply, encodeAnswer({ kind: 'original', id: ask.id, itemId }))
    })
    this.#ends.push(() => reading.stop(), unsubscribe)
  }

  #read(data: Uint8Array): void {
    const duplicates: { index: number; of: string }[] = []
    decodePack(data, ({ explicit, groupToken, messageId, itemId }, index) => {
      if (!explicit) return
      const original = this.#originals.get(`${groupToken}/${messageId}`)
      if (original === undefined) this.#originals.set(`${groupToken}/${messageId}`, itemId)
      else duplicates.push({ index, of: original })
    })
    const { packId, replySubject } = readPackHeader(data)
    if (replySubject === null) return
    this.verdicts++
    this.#broker.publish(replySubject, encodeVerdict({ packId, duplicates }))
  }
}

async function storedItems(broker: NatsBroker): Promise<string[]> {
  const ids: string[] = []
  for (let shard = 0; shard < SHARDS; shard++) {
    for await (const { data } of broker.inbox(shard).range(1, Number.MAX_SAFE_INTEGER)) {
      decodePack(data, ({ itemId }) => ids.push(itemId))
    }
  }
  return ids
}

describe('the inbox over the broker', () => {
  const ending: (() => unknown)[] = []
  afterEach(async () => {
    for (const end of ending.splice(0).reverse()) await end()
  })

  function packerOver(at: TestBroker): Packer {
    const { broker } = at
    const packer = new Packer({
      shards: SHARDS,
      logOf: (shard) => broker.inbox(shard),
      messages: broker,
      clock: systemClock(),
      randomness,
      telemetry: noTelemetry,
      subjects: 'group',
    })
    ending.push(() => packer.close())
    return packer
  }

  async function onAccount(): Promise<{ at: TestBroker; packer: Packer }> {
    const at = await brokerAt((await natsAccount()).url, SHARDS)
    ending.push(() => at.close())
    return { at, packer: packerOver(at) }
  }

  const items = (count: number, changes: Partial<NewItem> = {}) =>
    Array.from({ length: count }, (_, i) => newItem({ groupKey: `group-${i % 7}`, ...changes }))

  it('stores every item once, many to a pack, in the order of each group', async () => {
    const { at, packer } = await onAccount()
    const list = items(2_000)
    await Promise.all(list.map((item) => packer.append(item)))
    const states = [await at.broker.inbox(0).state(), await at.broker.inbox(1).state()]
    expect((states[0]?.messages ?? 0) + (states[1]?.messages ?? 0)).to.be.below(200)
    const stored = await storedItems(at.broker)
    expect([...stored].sort()).to.deep.equal(list.map(({ itemId }) => itemId).sort())
    const order = new Map(stored.map((itemId, place) => [itemId, place]))
    for (let group = 0; group < 7; group++) {
      const places = list.filter((_, i) => i % 7 === group).map(({ itemId }) => order.get(itemId) ?? -1)
      expect(places).to.deep.equal([...places].sort((a, b) => a - b))
    }
  })

  it('of 100 parallel requests with one id takes one, and tells the others of it', async () => {
    const { at, packer } = await onAccount()
    const owner = await BareOwner.over(at.broker)
    ending.push(() => owner.stop())
    const list = items(100, { groupKey: 'one', messageId: 'same', explicit: true })
    const answers = await Promise.all(list.map((item) => packer.append(item)))
    const originals = answers.flatMap(({ duplicateOf }, i) => (duplicateOf === null ? [list[i]?.itemId] : []))
    expect(originals).to.have.length(1)
    expect(answers.filter(({ duplicateOf }) => duplicateOf === originals[0])).to.have.length(99)
    expect(answers.some(({ late }) => late !== undefined)).to.equal(false)
    const originalIn = (group: string) => packer.findOriginal(list[0]?.bufferUid ?? '', group, 'same')
    await eventually(async () => expect(await originalIn('one')).to.equal(originals[0]))
    await eventually(async () => expect(await originalIn('other')).to.equal(null))
  })

  it('does without the owner, and hears its verdict when it comes', async () => {
    const { at, packer } = await onAccount()
    const duplicates = items(2, { groupKey: 'one', messageId: 'same', explicit: true })
    const answers = await Promise.all(duplicates.map((item) => packer.append(item)))
    expect(answers.map(({ duplicateOf }) => duplicateOf)).to.deep.equal([null, null])
    const owner = await BareOwner.over(at.broker)
    ending.push(() => owner.stop())
    expect(await Promise.all(answers.map(({ late }) => late))).to.deep.equal(['new', 'duplicate'])
  })

  it('loses PubAcks: every item is answered, and stored once', async () => {
    const server = await ownNats()
    ending.push(() => server.stop())
    const proxy = await NatsProxy.to(server.port)
    ending.push(() => proxy.close())
    const at = await brokerAt(proxy.through(server.url), SHARDS)
    ending.push(() => at.close())
    const packer = packerOver(at)
    const pubAck = /^_INBOX\.\w+\.\w+$/
    proxy.swallow(({ subject }) => pubAck.test(subject) && proxy.swallowed < 2)
    const list = items(50)
    await Promise.all(list.map((item) => packer.append(item)))
    expect(proxy.swallowed).to.equal(2)
    expect((await storedItems(at.broker)).sort()).to.deep.equal(list.map(({ itemId }) => itemId).sort())
  })

  it('over a kill and restart of the broker: what is answered is stored, once', async () => {
    const server = await ownNats({ sync: 'always' })
    ending.push(() => server.stop())
    const at = await brokerAt(server.url, SHARDS)
    ending.push(() => at.close())
    const packer = packerOver(at)
    const answered: string[] = []
    let stopping = false
    const sender = async () => {
      while (!stopping) {
        const item = newItem({ itemId: randomUUID(), groupKey: `group-${answered.length % 7}` })
        const stored: Stored | undefined = await packer.append(item).catch(() => undefined)
        if (stored) answered.push(item.itemId)
      }
    }
    const senders = Array.from({ length: 20 }, sender)
    await eventually(() => answered.length > 100)
    server.kill('SIGKILL')
    await server.restart()
    const before = answered.length
    await eventually(() => answered.length > before + 100, { timeoutMs: 15_000 })
    stopping = true
    await Promise.all(senders)
    const stored = await storedItems(at.broker)
    expect(new Set(stored).size, 'an item is stored twice').to.equal(stored.length)
    expect(stored).to.include.members(answered)
  }).timeout(40_000)

  it('full: refused at once with the reason, nothing evicted, and taken again after a purge', async () => {
    const { at, packer } = await onAccount()
    const manager = await at.connection.nats.jetstreamManager()
    for (const shard of [0, 1]) await manager.streams.update(`INBOX_${shard}`, { max_bytes: 50_000 })
    const item = () => newItem({ groupKey: 'one', payload: Buffer.alloc(30_000, 0x31) })
    await packer.append(item())
    const refused = await packer.append(item()).catch((error) => error)
    expect(refused).to.include({ name: 'InboxUnavailableError', reason: 'full' })
    expect(await storedItems(at.broker)).to.have.length(1)
    await packer.append(newItem({ groupKey: 'one' }))
    for (const shard of [0, 1])
      await at.broker.inbox(shard).purgeBelow((await at.broker.inbox(shard).state()).lastSeq)
    await packer.append(item())
  })
})
