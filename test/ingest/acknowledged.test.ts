/** Packs that the broker acknowledged and then lost, of which no owner has read any. */
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { AcknowledgedPacks } from '../../internal/ingest/acknowledged.ts'
import { Packer } from '../../internal/ingest/packer.ts'
import type { LostPackTelemetry } from '../../internal/ingest/ports.ts'
import type { Clock } from '../../internal/runtime/clock.ts'
import { systemClock } from '../../internal/runtime/system-clock.ts'
import type { Log } from '../../internal/shard/broker.ts'
import { brokerAt, type TestBroker } from '../nats/support.ts'
import { loseAbove } from '../shard/repair/loss.ts'
import { eventually } from '../support/eventually.ts'
import { natsAccount } from '../support/servers.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { newItem, noTelemetry, randomness } from './support.ts'

/** Waits end so many times sooner than they would. */
const HURRY = 25
/** A pack that is not there is looked for again after 25 s. */
const MORE_THAN_A_CHECK_MS = 30_000 / HURRY
const HALF_A_CHECK_MS = 12_500 / HURRY

const hurried: Clock = { ...systemClock(), after: (ms, task) => systemClock().after(ms / HURRY, task) }

type Lost = Parameters<LostPackTelemetry['lostPacks']>[0]

describe('what the broker acknowledged', () => {
  const ends: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  /** An ingress behind a proxy, which can be cut off. */
  async function ingress() {
    const { url } = await natsAccount()
    const proxy = await TcpProxy.to(Number(new URL(url).port))
    const beside = await brokerAt(url)
    const own: TestBroker = await brokerAt(proxy.through(url))
    const told: Lost[] = []
    const acknowledged = new AcknowledgedPacks({
      shards: 1,
      logOf: (shard) => own.broker.inbox(shard),
      clock: hurried,
      telemetry: { lostPacks: (event) => told.push(event) },
    })
    own.broker.onReconnect(() => acknowledged.check())
    const packer = new Packer({
      shards: 1,
      logOf: (shard) => own.broker.inbox(shard),
      messages: own.broker,
      clock: systemClock(),
      randomness,
      telemetry: noTelemetry,
      subjects: 'shard',
      onStored: (shard, seq, packId) => acknowledged.acknowledged(shard, seq, packId),
    })
    ends.push(
      () => proxy.close(),
      beside.close,
      own.close,
      async () => acknowledged.close(),
      () => packer.close(),
    )
    const inbox = beside.broker.inbox(0)
    const lose = (to: number) => loseAbove(beside.connection, inbox, { stream: 'INBOX_0', to })
    /** Resolves when the connection is there again. */
    const cutOff = () => {
      const back = new Promise<void>((resolve) => own.broker.onReconnect(resolve))
      proxy.reset()
      return back
    }
    return { packer, inbox, cutOff, lose, told }
  }

  const write = (inbox: Log, msgId: string) =>
    inbox.append(Buffer.from('another'), { subject: 'items.0.mixed', msgId, timeoutMs: 5_000 })

  it('is missed after a reconnect when the tail is gone', async () => {
    const { packer, inbox, cutOff, lose, told } = await ingress()
    for (let n = 0; n < 3; n++) await packer.append(newItem())
    const { firstSeq, lastSeq } = await inbox.state()
    await lose(firstSeq)
    await cutOff()
    await eventually(() => expect(told).to.have.length(1))
    expect(told).to.deep.equal([{ shard: 0, acknowledged: lastSeq, end: firstSeq }])
    await cutOff()
    await packer.append(newItem())
    await delay(HALF_A_CHECK_MS)
    expect(told, 'told once').to.have.length(1)
  })

  it('is missed when others stand in its place', async () => {
    const { packer, inbox, cutOff, lose, told } = await ingress()
    for (let n = 0; n < 2; n++) await packer.append(newItem())
    const { firstSeq, lastSeq } = await inbox.state()
    await lose(firstSeq)
    for (const msgId of ['b', 'c', 'd']) await write(inbox, msgId)
    await cutOff()
    await eventually(() =>
      expect(told).to.deep.equal([{ shard: 0, acknowledged: lastSeq, end: firstSeq + 3 }]),
    )
  })

  it('is missed at once when its place is given to the next pack', async () => {
    const { packer, inbox, cutOff, lose, told } = await ingress()
    for (let n = 0; n < 2; n++) await packer.append(newItem())
    const { firstSeq, lastSeq } = await inbox.state()
    await lose(firstSeq)
    await cutOff()
    await packer.append(newItem())
    expect(told).to.deep.equal([{ shard: 0, acknowledged: lastSeq, end: lastSeq }])
    await delay(MORE_THAN_A_CHECK_MS)
    expect(told, 'told once').to.have.length(1)
  })

  it('is not missed when it is there, or an owner is done with it', async () => {
    const { packer, inbox, cutOff, told } = await ingress()
    for (let n = 0; n < 2; n++) await packer.append(newItem())
    await cutOff()
    await delay(HALF_A_CHECK_MS)
    const { lastSeq } = await inbox.state()
    await inbox.purgeBelow(lastSeq + 1)
    await cutOff()
    await delay(MORE_THAN_A_CHECK_MS)
    expect(told).to.deep.equal([])
  })
})
