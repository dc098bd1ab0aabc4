/** What an owner tells of its buffers and logs, on the real broker. */
import { expect } from 'chai'
import { after, afterEach, before, describe, it } from 'mocha'

import { decodeShareReport, type ShareReport, sharesSubject } from '../../../internal/domain/share-report.ts'
import { connect, type Database } from '../../../internal/postgres/connection.ts'
import type { LogUsage, LogUsageTelemetry } from '../../../internal/shard/ports.ts'
import { LogUsageMonitor } from '../../../internal/shard/status/log-usage.ts'
import {
  CUSTOMER_SHARE,
  customerLimit,
  type Reporting,
  SHARE,
  SharePublisher,
} from '../../../internal/shard/status/shares.ts'
import { ManualClock } from '../../delivery/manual-clock.ts'
import { brokerAt, type TestBroker } from '../../nats/support.ts'
import { eventually } from '../../support/eventually.ts'
import { insertBuffer, insertCustomer, type TestBuffer } from '../../support/rows.ts'
import { freshDatabase, natsAccount } from '../../support/servers.ts'
import { createOwner, ingest, type Owner } from '../real-owner.ts'

const INBOX_BYTES = 400_000
const LIMIT = INBOX_BYTES * SHARE
const HELD = { maxItems: 10_000, idleTimeoutMs: 600_000, maxWaitFromFirstMs: 600_000 }

class Told implements LogUsageTelemetry {
  latest: readonly LogUsage[] = []
  readonly lines: string[] = []

  usage(usages: readonly LogUsage[]): void {
    this.latest = usages
  }

  nearlyFull({ shard, log }: LogUsage): void {
    this.lines.push(`${log} ${shard} nearly full`)
  }

  hasSpace({ shard, log }: LogUsage): void {
    this.lines.push(`${log} ${shard} has space`)
  }
}

describe('what one customer may hold', () => {
  /** Customers that take all they may, one after the other and again, until none may take more. */
  function greedy(count: number): number[] {
    const held = Array.from({ length: count }, () => 0)
    for (let round = 0; round < 200; round++) {
      for (let one = 0; one < count; one++) {
        const total = held.reduce((sum, each) => sum + each, 0)
        // Small steps, as items come.
        if (held[one]! < customerLimit(INBOX_BYTES, total)) held[one]! += INBOX_BYTES / 200
      }
    }
    return held
  }

  it('is half of the inbox for one alone, and 0.3 of it for each of two', () => {
    expect(greedy(1)[0]! / INBOX_BYTES).to.be.closeTo(0.5, 0.01)
    for (const held of greedy(2)) expect(held / INBOX_BYTES).to.be.closeTo(0.3, 0.01)
  })

  for (const count of [1, 2, 5, 10]) {
    it(`leaves room to whoever comes when ${count} hold all they may`, () => {
      const total = greedy(count).reduce((sum, each) => sum + each, 0)
      expect(total / INBOX_BYTES, 'what is held').to.be.below(CUSTOMER_SHARE.all)
      const share = customerLimit(INBOX_BYTES, total) / INBOX_BYTES
      expect(share, 'a tenth less than an equal part').to.be.above((0.9 * CUSTOMER_SHARE.all) / (count + 1))
    })
  }

  it('is never less than a hundredth', () => {
    for (const total of [0.75, 0.9, 1]) {
      expect(customerLimit(INBOX_BYTES, total * INBOX_BYTES)).to.equal(INBOX_BYTES / 100)
    }
  })
})

describe('an owner', () => {
  let db: Database
  let buffer: TestBuffer
  const ends: (() => unknown)[] = []

  before(async () => {
    db = connect(await freshDatabase(), { max: 4 })
    buffer = await insertBuffer(db, await insertCustomer(db))
  })
  after(() => db.end({ timeout: 2 }))
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })

  async function brokerWith(inboxBytes: number): Promise<TestBroker> {
    const at = await brokerAt((await natsAccount()).url)
    ends.push(() => at.close())
    await (await at.connection.nats.jetstreamManager()).streams.update('INBOX_0', { max_bytes: inboxBytes })
    return at
  }

  async function ownerOn({ broker }: TestBroker, batch: Partial<typeof HELD> = HELD): Promise<Owner> {
    const owner = createOwner({ broker, db, buffer, batch })
    ends.push(() => owner.shard.abandon())
    await owner.shard.start()
    await eventually(() => owner.shard.state === 'running')
    return owner
  }

  /** Reports as they arrive at somebody else's connection. */
  async function publishing(at: TestBroker, running: () => Iterable<[number, Reporting]>) {
    const clock = new ManualClock()
    const told = new Told()
    const reports: ShareReport[] = []
    const publisher = new SharePublisher({ broker: at.broker, clock, running, telemetry: told })
    ends.push(() => publisher.stop())
    ends.push(at.broker.subscribe(sharesSubject(0), (data) => reports.push(decodeShareReport(data)!)))
    await at.connection.nats.flush()
    publisher.start()
    await eventually(() => told.latest.length > 0 || !tick(clock))
    return { clock, told, reports, publisher }
  }

  it('tells each second what its buffers hold of the log, and what one may hold', async () => {
    const at = await brokerWith(INBOX_BYTES)
    const { shard } = await ownerOn(at)
    const { clock, reports } = await publishing(at, () => [[0, shard]])
    await eventually(() => {
      tick(clock)
      return reports.some(({ buffers }) => buffers.held.length === 0)
    })
    await ingest(at.broker, buffer, [{ key: 'a', n: 1, pad: 60_000 }])
    await ingest(at.broker, buffer, [
      { key: 'b', n: 2, pad: 30_000 },
      { key: 'c', n: 3, pad: 30_000 },
    ])
    const [report] = await eventually(() => {
      tick(clock)
      const whole = reports.filter(({ buffers }) => (buffers.held[0]?.bytes ?? 0) > 120_000)
      return whole.length > 0 && whole
    })
    expect(report).to.include({ shard: 0, epoch: shard.epoch })
    const { buffers, customers } = report!
    expect(buffers.limit).to.equal(LIMIT)
    expect(buffers.held.map(({ id }) => id)).to.deep.equal([buffer.uid])
    const held = buffers.held[0]!.bytes
    const { bytes } = await at.broker.inbox(0).state()
    expect(held, 'never more than the log holds').to.be.below(bytes)
    expect(customers.held).to.deep.equal([{ id: buffer.customerId, bytes: held }])
    expect(customers.limit).to.equal(customerLimit(INBOX_BYTES, held))
  })

  it('counts what tiny payloads take of the log, not the payloads', async () => {
    const at = await brokerWith(INBOX_BYTES)
    const { shard } = await ownerOn(at)
    await ingest(
      at.broker,
      buffer,
      Array.from({ length: 500 }, (_, n) => ({ key: `k${n % 7}`, n })),
    )
    await eventually(() => [...shard.buffered()][0]?.items === 500)
    const [held] = [...shard.buffered()]
    expect(held!.storedBytes).to.be.above(4 * held!.bytes)
    const { bytes } = await at.broker.inbox(0).state()
    expect(held!.storedBytes).to.be.within(bytes * 0.9, bytes)
  })

  it('tells less again once it was delivered', async () => {
    const at = await brokerWith(INBOX_BYTES)
    const { shard } = await ownerOn(at, { maxItems: 2 })
    const { clock, reports } = await publishing(at, () => [[0, shard]])
    await ingest(at.broker, buffer, [{ key: 'a', n: 1, pad: 60_000 }])
    await eventually(() => {
      tick(clock)
      return reports.at(-1)?.buffers.held.length === 1
    })
    await ingest(at.broker, buffer, [{ key: 'a', n: 2 }])
    await eventually(() => {
      tick(clock)
      return reports.at(-1)?.buffers.held.length === 0
    })
  })

  it('says nothing while it replays, nor of a shard that is not here', async () => {
    const at = await brokerWith(INBOX_BYTES)
    const { shard } = await ownerOn(at)
    let state = 'replaying'
    let here = true
    const reporting = (): Iterable<[number, Reporting]> => {
      const { epoch } = shard
      return here ? [[0, { state, epoch, buffered: () => shard.buffered() }]] : []
    }
    const { clock, reports, told } = await publishing(at, reporting)
    tick(clock)
    await at.connection.nats.flush()
    expect(reports).to.deep.equal([])
    state = 'running'
    await eventually(() => {
      tick(clock)
      return reports.length > 0
    })
    here = false
    await at.connection.nats.flush()
    reports.length = 0
    tick(clock)
    await at.connection.nats.flush()
    expect([reports, told.latest]).to.deep.equal([[], []])
  })

  it('stops when it is told to', async () => {
    const at = await brokerWith(INBOX_BYTES)
    const { shard } = await ownerOn(at)
    const { clock, publisher } = await publishing(at, () => [[0, shard]])
    publisher.stop()
    expect(clock.pending).to.equal(0)
  })

  it('warns once of a log that is nearly full, and again only after it had room', async () => {
    const at = await brokerWith(100_000)
    const clock = new ManualClock()
    const told = new Told()
    const usages = new LogUsageMonitor({ broker: at.broker, clock, telemetry: told })
    const inbox = at.broker.inbox(0)
    const look = async () => {
      const before = told.latest
      clock.advance(10_000)
      usages.look(new Set([0]))
      await eventually(() => {
        usages.look(new Set([0]))
        return told.latest[0] !== before[0]
      })
      return told.latest.find(({ log }) => log === 'inbox')!
    }
    /** Until the log holds about this many bytes of its 100,000. */
    const fill = async (bytes: number) => {
      const missing = bytes - (await inbox.state()).bytes
      await ingest(at.broker, buffer, [{ key: 'a', n: 1, pad: missing - 400 }])
    }
    /** Only the message of the last `fill` and what comes later stays. */
    const purge = async () => inbox.purgeBelow((await inbox.state()).lastSeq)

    await fill(60_000)
    expect(await look()).to.include({ shard: 0, log: 'inbox', maxBytes: 100_000 })
    expect(told.latest.map(({ log }) => log)).to.deep.equal(['inbox', 'journal', 'archive'])
    expect(usages.inboxBytes(0)).to.equal(100_000)
    expect(told.lines).to.deep.equal([])
    await fill(75_000)
    await look()
    expect(told.lines, 'between both bounds').to.deep.equal([])
    await fill(90_000)
    expect((await look()).bytes).to.be.within(85_000, 95_000)
    expect(told.lines).to.deep.equal(['inbox 0 nearly full'])
    await look()
    expect(told.lines, 'still nearly full').to.have.length(1)
    await purge()
    await fill(75_000)
    await look()
    expect(told.lines, 'between both bounds').to.have.length(1)
    await purge()
    await look()
    expect(told.lines).to.deep.equal(['inbox 0 nearly full', 'inbox 0 has space'])
    await fill(95_000)
    await look()
    expect(told.lines.at(-1)).to.equal('inbox 0 nearly full')
    expect(told.lines).to.have.length(3)
  })

  it('asks for the state of its logs every 10 s, not each second', async () => {
    const at = await brokerWith(INBOX_BYTES)
    const clock = new ManualClock()
    let asked = 0
    const broker = {
      inbox: (shard: number) => ({
        ...at.broker.inbox(shard),
        state: () => {
          asked++
          return at.broker.inbox(shard).state()
        },
      }),
      journal: at.broker.journal,
      archive: at.broker.archive,
    }
    const usages = new LogUsageMonitor({ broker: broker as never, clock, telemetry: new Told() })
    for (let second = 0; second < 21; second++) {
      usages.look(new Set([0]))
      clock.advance(1_000)
    }
    expect(asked).to.equal(3)
  })
})

/** A second of the publisher's time. Always true. */
function tick(clock: ManualClock): true {
  clock.advance(1_000)
  return true
}
