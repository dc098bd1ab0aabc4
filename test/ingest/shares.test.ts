import { randomUUID } from 'node:crypto'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'

import { groupToken, shardOf } from '../../internal/domain/group.ts'
import type { BufferRecord } from '../../internal/domain/model.ts'
import { encodeShareReport, type ShareReport, sharesSubject } from '../../internal/domain/share-report.ts'
import { ReportedShares } from '../../internal/ingest/shares.ts'
import { ManualClock } from '../delivery/manual-clock.ts'
import { brokerAt } from '../nats/support.ts'
import { eventually } from '../support/eventually.ts'
import { natsAccount } from '../support/servers.ts'
import { LocalMessages } from './support.ts'

const SHARDS = 4
const LIMIT = 1_000
const EPOCH = 50
const CUSTOMER: string = randomUUID()

function recordOf(uid: string, customerId: string): BufferRecord {
  return { uid, buffer: { customerId } } as BufferRecord
}

/** A group key of the buffer whose group is on this shard. */
function keyOn(bufferUid: string, shard: number): string {
  for (let n = 0; ; n++) if (shardOf(groupToken(bufferUid, `k${n}`), SHARDS) === shard) return `k${n}`
}

describe('shares as an ingress hears of them', () => {
  const uid = randomUUID()
  let clock: ManualClock
  let messages: LocalMessages
  let shares: ReportedShares
  let told: string[]

  beforeEach(() => {
    clock = new ManualClock()
    messages = new LocalMessages()
    told = []
    shares = new ReportedShares({
      clock,
      messages,
      shards: SHARDS,
      telemetry: {
        shareReached: ({ shard, holder, bytes, limit }) =>
          told.push(`${holder} reached ${shard}: ${bytes} of ${limit}`),
        shareLeft: ({ shard, holder }) => told.push(`${holder} left ${shard}`),
      },
    })
  })
  afterEach(() => shares.close())

  function report(bytes: number, { shard = 2, epoch = EPOCH, bufferUid = uid } = {}): void {
    const held = bytes > 0 ? [{ id: bufferUid, bytes }] : []
    say({ shard, epoch, buffers: { limit: LIMIT, held }, customers: { limit: 0, held: [] } })
  }

  function say(report: ShareReport): void {
    messages.publish(sharesSubject(report.shard), encodeShareReport(report))
  }

  /** Of one buffer, and of its customer. */
  function reportBoth(ofBuffer: number, ofCustomer: number, limit = LIMIT): void {
    const buffers = { limit: LIMIT, held: [{ id: uid, bytes: ofBuffer }] }
    const customers = { limit, held: [{ id: CUSTOMER, bytes: ofCustomer }] }
    say({ shard: 2, epoch: EPOCH, buffers, customers })
  }

  const over = (shard = 2, bufferUid: string = uid, customerId = CUSTOMER) =>
    shares.over(recordOf(bufferUid, customerId), keyOn(bufferUid, shard))
  const isOver = (shard = 2, bufferUid = uid) => over(shard, bufferUid) === 'buffer'

  it('refuse nobody of whom nothing was heard', () => {
    expect(isOver()).to.equal(false)
  })

  it('refuse a buffer from its limit on, on that shard alone, and no other buffer', () => {
    report(LIMIT - 1)
    expect(isOver()).to.equal(false)
    report(LIMIT)
    expect(isOver()).to.equal(true)
    for (const shard of [0, 1, 3]) expect(isOver(shard), `shard ${shard}`).to.equal(false)
    expect(isOver(2, randomUUID())).to.equal(false)
  })

  it('let it in again a tenth below the limit, not before', () => {
    const seen = [999, 1_000, 999, 900, 899, 950, 999, 1_001, 0].map((bytes) => {
      report(bytes)
      return isOver()
    })
    expect(seen).to.deep.equal([false, true, true, true, false, false, false, true, false])
    expect(told).to.deep.equal([
      'buffer reached 2: 1000 of 1000',
      'buffer left 2',
      'buffer reached 2: 1001 of 1000',
      'buffer left 2',
    ])
  })

  it('follow each shard by its own owner', () => {
    report(2_000, { shard: 1 })
    report(2_000, { shard: 3 })
    report(0, { shard: 1 })
    expect([isOver(1), isOver(3)]).to.deep.equal([false, true])
  })

  it('count for nothing 3 s after the last report', () => {
    report(2_000)
    clock.advance(3_000)
    expect(isOver()).to.equal(true)
    clock.advance(1)
    expect(isOver()).to.equal(false)
    expect(told.at(-1)).to.equal('buffer left 2')
    report(2_000)
    expect(isOver()).to.equal(true)
  })

  it('believe the last claim of a shard, and an older one only when that is silent', () => {
    report(2_000, { epoch: EPOCH })
    report(0, { epoch: EPOCH - 1 })
    expect(isOver(), 'an owner that lost the shard').to.equal(true)
    report(0, { epoch: EPOCH + 1 })
    expect(isOver(), 'the next owner').to.equal(false)
    report(2_000, { epoch: EPOCH })
    expect(isOver(), 'the one before').to.equal(false)
    clock.advance(3_001)
    report(2_000, { epoch: EPOCH })
    expect(isOver(), 'when no other speaks').to.equal(true)
  })

  it('take no harm from what is no report, or one of another shard', () => {
    report(2_000)
    messages.publish(sharesSubject(2), Buffer.from('{"shard":2,"epoch":99'))
    const none = { limit: LIMIT, held: [] }
    const foreign = { shard: 3, epoch: EPOCH + 9, buffers: none, customers: none }
    messages.publish(sharesSubject(2), encodeShareReport(foreign))
    expect([isOver(2), isOver(3)]).to.deep.equal([true, false])
  })

  it('refuse all buffers of a customer that holds its share, and no other customer', () => {
    reportBoth(10, 2 * LIMIT - 1, 2 * LIMIT)
    expect(over()).to.equal(null)
    reportBoth(10, 2 * LIMIT, 2 * LIMIT)
    for (const each of [uid, randomUUID()]) expect(over(2, each)).to.equal('customer')
    expect(over(2, randomUUID(), 'another')).to.equal(null)
    expect(over(1), 'another shard').to.equal(null)
    // A customer may choose the id of a buffer for its own.
    expect(over(2, CUSTOMER, 'another')).to.equal(null)
    expect(told).to.deep.equal(['customer reached 2: 2000 of 2000'])
  })

  it('name the buffer where both are full', () => {
    reportBoth(LIMIT, LIMIT)
    expect(over()).to.equal('buffer')
    reportBoth(0, LIMIT)
    expect(over()).to.equal('customer')
    reportBoth(0, 0)
    expect(over()).to.equal(null)
    expect(told).to.deep.equal([
      'buffer reached 2: 1000 of 1000',
      'customer reached 2: 1000 of 1000',
      'buffer left 2',
      'customer left 2',
    ])
  })

  it('follow the limit of a customer as it moves', () => {
    const seen = [1_000, 900, 899, 901, 1_200].map((limit) => {
      reportBoth(0, 900, limit)
      return over()
    })
    // Once it is refused, it is let in from nine tenths of the limit on: 900 of 1,000, and of more.
    expect(seen).to.deep.equal([null, 'customer', 'customer', 'customer', null])
  })

  it('hear nothing any more when they are closed', () => {
    shares.close()
    report(2_000)
    expect(isOver()).to.equal(false)
  })
})

describe('shares over the broker', () => {
  it('are heard by every ingress', async () => {
    const uid = randomUUID()
    const { url } = await natsAccount()
    const owner = await brokerAt(url, SHARDS)
    const ingresses = await Promise.all([1, 2].map(() => brokerAt(url, SHARDS)))
    const clock = new ManualClock()
    const telemetry = { shareReached: () => {}, shareLeft: () => {} }
    const record = recordOf(uid, CUSTOMER)
    const all = ingresses.map(
      ({ broker }) => new ReportedShares({ clock, telemetry, shards: SHARDS, messages: broker }),
    )
    const say = (bytes: number) => {
      const buffers = { limit: LIMIT, held: [{ id: uid, bytes }] }
      const report = { shard: 1, epoch: EPOCH, buffers, customers: { limit: 0, held: [] } }
      owner.broker.publish(sharesSubject(1), encodeShareReport(report))
    }
    const key = keyOn(uid, 1)
    for (const [bytes, over] of [
      [LIMIT, true],
      [LIMIT / 2, false],
    ] as const) {
      await eventually(() => {
        say(bytes)
        return all.every((shares) => (shares.over(record, key) === 'buffer') === over)
      })
    }
    for (const shares of all) shares.close()
    await Promise.all([owner, ...ingresses].map((each) => each.close()))
  })
})
